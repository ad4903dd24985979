# What `make install` and `make package` put on a machine: the program, its manual page, completions for three shells, examples.
include(GNUInstallDirs)

# The program writes its own pages. Its version and completions are the ones that it was built with.
set(pages ${CMAKE_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${pages}/weft.1.gz ${pages}/weft.bash ${pages}/_weft ${pages}/weft.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
  COMMAND weft help --man > ${pages}/weft.1
  COMMAND gzip -9nf ${pages}/weft.1
  COMMAND weft completion bash > ${pages}/weft.bash
  COMMAND weft completion zsh > ${pages}/_weft
  COMMAND weft completion fish > ${pages}/weft.fish
  DEPENDS weft
  COMMENT "Writing the manual page and the completions")
add_custom_target(weft_pages DEPENDS ${pages}/weft.1.gz)

install(TARGETS weft RUNTIME)
install(FILES ${pages}/weft.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/weft.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weft)
install(FILES ${pages}/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${pages}/weft.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the weft project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "pretrains transformers across many ranks")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Megatron-LM's job in C++: it takes that program's flags, data and layouts, and needs no Python.
Ranks are threads of one process, or processes on several machines with Open MPI. The loops for the processor's instruction set
are chosen when it starts, so one package serves every processor of its architecture.")
set(CPACK_PACKAGE_FILE_NAME weft)  # of the folder; the package takes Debian's own form
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)

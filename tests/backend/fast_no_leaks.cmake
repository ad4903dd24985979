# Fails where an object compiled for one instruction set defines a function that the linker may share with other objects and
# whose name does not say which set it is for.
string(REPLACE "|" ";" objects "${OBJECTS}")
foreach(object IN LISTS objects)
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "\n" ";" lines "${symbols}")
  foreach(line IN LISTS lines)
    if(line MATCHES " [WVu] " AND NOT line MATCHES "weft::fast::(generic|avx2|avx512|avx512_bf16|avx512_amx)::")
      message(SEND_ERROR "${object} would share ${line}")
    endif()
  endforeach()
endforeach()

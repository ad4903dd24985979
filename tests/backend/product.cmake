weft_tests(backend NAME backend_onednn_product SEES base tensor FILES onednn_groups_test.cpp onednn_pieces_test.cpp onednn_product_test.cpp)
weft_finds_no_leaks(product)

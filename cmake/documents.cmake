# The manual page and the completions, which the program writes from its own tables.
set(SLUICE_DOCUMENTS_DIR ${CMAKE_BINARY_DIR}/documents)
file(MAKE_DIRECTORY ${SLUICE_DOCUMENTS_DIR})
function(sluice_write_document file)
  add_custom_command(OUTPUT ${SLUICE_DOCUMENTS_DIR}/${file} DEPENDS sluice
    COMMAND sluice ${ARGN} > ${SLUICE_DOCUMENTS_DIR}/${file} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY SLUICE_DOCUMENTS ${SLUICE_DOCUMENTS_DIR}/${file})
endfunction()
sluice_write_document(sluice.1 manual)
foreach(shell bash zsh fish)
  sluice_write_document(sluice.${shell} completion ${shell})
endforeach()
get_property(SLUICE_DOCUMENTS GLOBAL PROPERTY SLUICE_DOCUMENTS)
add_custom_target(sluice_documents ALL DEPENDS ${SLUICE_DOCUMENTS})

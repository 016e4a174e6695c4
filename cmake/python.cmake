# The Python package: python/sluice with the module _C, in ${CMAKE_BINARY_DIR}/python. It holds a copy of the core of
# its own, whose symbols nobody else sees. ONLY builds nothing else, and needs less: neither the CMake files of PyTorch
# nor the libraries of the program.
set(SLUICE_PYTHON OFF CACHE STRING "Build the Python package, for PyTorch: ON, OFF or ONLY")
set_property(CACHE SLUICE_PYTHON PROPERTY STRINGS ON OFF ONLY)
if(NOT SLUICE_PYTHON)
  return()
endif()

# The first python3 that has PyTorch.
if(NOT Python_EXECUTABLE)
  find_program(SLUICE_PYTHON3 python3)
  foreach(candidate ${SLUICE_PYTHON3} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import torch" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(Python_EXECUTABLE ${candidate} CACHE FILEPATH "A Python with PyTorch")
      break()
    endif()
  endforeach()
  if(NOT Python_EXECUTABLE)
    message(FATAL_ERROR "SLUICE_PYTHON needs a python3 with PyTorch (Debian: python3-torch), or -DPython_EXECUTABLE=...")
  endif()
endif()
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
# The PyTorch of this Python, which need not be the LibTorch of the program.
execute_process(COMMAND ${Python_EXECUTABLE} -c "import torch; print(torch.__path__[0], end='')"
  OUTPUT_VARIABLE SLUICE_PYTORCH COMMAND_ERROR_IS_FATAL ANY)
set(SLUICE_PYTORCH_INCLUDES ${SLUICE_PYTORCH}/include ${SLUICE_PYTORCH}/include/torch/csrc/api/include)
foreach(library c10 torch torch_cpu torch_python)
  find_library(SLUICE_PYTORCH_${library} ${library} PATHS ${SLUICE_PYTORCH}/lib NO_DEFAULT_PATH REQUIRED)
  list(APPEND SLUICE_PYTORCH_LIBRARIES ${SLUICE_PYTORCH_${library}})
endforeach()
# PyTorch brings it, except Debian's.
find_path(SLUICE_PYBIND11 pybind11/pybind11.h HINTS ${SLUICE_PYTORCH}/include REQUIRED)

set(SLUICE_PACKAGE_DIR ${CMAKE_BINARY_DIR}/python/sluice)
file(GLOB SLUICE_MODULE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/module/*.cc)
Python_add_library(sluice_python MODULE WITH_SOABI ${SLUICE_MODULE_SOURCES})
set_target_properties(sluice_python PROPERTIES OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY ${SLUICE_PACKAGE_DIR}
  CXX_VISIBILITY_PRESET hidden BUILD_RPATH ${SLUICE_PYTORCH}/lib)
target_include_directories(sluice_python PRIVATE ${PROJECT_SOURCE_DIR}/python/module)
target_include_directories(sluice_python SYSTEM PRIVATE ${SLUICE_PYTORCH_INCLUDES} ${SLUICE_PYBIND11})
target_compile_definitions(sluice_python PRIVATE NDEBUG FMT_HEADER_ONLY)
target_link_libraries(sluice_python PRIVATE sluice_exchange sluice_session sluice_torch_opener ${SLUICE_PYTORCH_LIBRARIES})
target_link_options(sluice_python PRIVATE -Wl,--exclude-libs,ALL)

file(MAKE_DIRECTORY ${SLUICE_PACKAGE_DIR})
foreach(part __init__.py py.typed torch)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/sluice/${part} ${SLUICE_PACKAGE_DIR}/${part} SYMBOLIC)
endforeach()

# Launches are slow, so there are few: the loops are in the programs.
if(SLUICE_HAS_MPI)
  enable_testing()
  set(SLUICE_RUN_PYTHON ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/tests/run.py ${MPIEXEC_EXECUTABLE})
  set(SLUICE_PYTHON_PRESETS p3 p3-allreduce wfbp kvstore slicing ar-sgd)
  foreach(processes 1 2 3 4)
    add_test(NAME PythonOptimizers${processes}
      COMMAND ${SLUICE_RUN_PYTHON} ${processes} optimizers.py ${SLUICE_PYTHON_PRESETS})
  endforeach()
  foreach(processes 1 3)
    add_test(NAME PythonSupport${processes} COMMAND ${SLUICE_RUN_PYTHON} ${processes} support.py)
    add_test(NAME PythonCollectives${processes} COMMAND ${SLUICE_RUN_PYTHON} ${processes} collectives.py)
    add_test(NAME PythonParallel${processes} COMMAND ${SLUICE_RUN_PYTHON} ${processes} parallel.py)
    add_test(NAME PythonRecording${processes} COMMAND ${SLUICE_RUN_PYTHON} ${processes} recording.py)
    add_test(NAME PythonDiLoCo${processes} COMMAND ${SLUICE_RUN_PYTHON} ${processes} diloco.py)
    add_test(NAME PythonCheckpoint${processes} COMMAND ${SLUICE_RUN_PYTHON} ${processes} checkpoint.py)
    list(APPEND SLUICE_PYTHON_TESTS PythonSupport${processes} PythonCollectives${processes} PythonParallel${processes}
      PythonRecording${processes} PythonDiLoCo${processes} PythonCheckpoint${processes})
  endforeach()
  add_test(NAME PythonInstalling
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/tests/installing.py $<TARGET_FILE:sluice_python>)
  add_test(NAME PythonWithMpi4py COMMAND ${SLUICE_RUN_PYTHON} 3 with_mpi4py.py)
  list(APPEND SLUICE_PYTHON_TESTS PythonWithMpi4py)
  if(NOT SLUICE_PYTHON STREQUAL "ONLY")
    foreach(transport mpi tcp)
      set(SLUICE_KEPT ${CMAKE_BINARY_DIR}/restarted-${transport})
      add_test(NAME PythonRestarted-${transport} COMMAND sh -c "rm -rf '${SLUICE_KEPT}'; exec '$<TARGET_FILE:sluice>' launch -n 2 \
        --transport ${transport} --max-restarts 1 -- '${Python_EXECUTABLE}' '${PROJECT_SOURCE_DIR}/python/tests/restarted.py' \
        --checkpoint '${SLUICE_KEPT}'")
      set_tests_properties(PythonRestarted-${transport} PROPERTIES
        PASS_REGULAR_EXPRESSION "began with iteration 9.*the same bits")
      list(APPEND SLUICE_PYTHON_TESTS PythonRestarted-${transport})
    endforeach()
    foreach(program support collectives parallel diloco)
      add_test(NAME PythonWithoutMpi-${program} COMMAND sluice launch -n 3 --transport tcp --
        ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/tests/${program}.py)
      list(APPEND SLUICE_PYTHON_TESTS PythonWithoutMpi-${program})
    endforeach()
  endif()
  foreach(how exception exit-0 exit-3)
    add_test(NAME PythonFailing-${how} COMMAND ${SLUICE_RUN_PYTHON} 3 failing.py ${how})
    list(APPEND SLUICE_PYTHON_TESTS PythonFailing-${how})
  endforeach()
  foreach(processes 1 2 3 4)
    list(APPEND SLUICE_PYTHON_TESTS PythonOptimizers${processes})
  endforeach()
  set(SLUICE_EXAMPLES ${PROJECT_SOURCE_DIR}/examples/python)
  add_test(NAME PythonExampleHorovod COMMAND ${SLUICE_RUN_PYTHON} 2 ${SLUICE_EXAMPLES}/horovod_script.diff)
  add_test(NAME PythonExampleDdp COMMAND ${SLUICE_RUN_PYTHON} 2 ${SLUICE_EXAMPLES}/ddp_script.diff)
  add_test(NAME PythonExampleGpt COMMAND ${SLUICE_RUN_PYTHON} 2 ${SLUICE_EXAMPLES}/gpt.py --steps 30)
  add_test(NAME PythonExampleDiLoCo COMMAND ${SLUICE_RUN_PYTHON} 2 ${SLUICE_EXAMPLES}/gpt.py --steps 30 --sync-every 10)
  add_test(NAME PythonExampleGan COMMAND ${SLUICE_RUN_PYTHON} 2 ${SLUICE_EXAMPLES}/gan.py --steps 200)
  add_test(NAME PythonExampleClassifier
    COMMAND ${SLUICE_RUN_PYTHON} 2 ${SLUICE_EXAMPLES}/classifier.py --samples 3200 --epochs 1)
  list(APPEND SLUICE_PYTHON_TESTS
    PythonExampleHorovod PythonExampleDdp PythonExampleGpt PythonExampleDiLoCo PythonExampleGan
    PythonExampleClassifier)
  set_tests_properties(${SLUICE_PYTHON_TESTS} PROPERTIES ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python")
endif()

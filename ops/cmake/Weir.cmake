# SPDX-License-Identifier: Apache-2.0
# How Weir declares its parts. Three helpers, one table:
#
#   weir_module(store/base USES … LIBS …)     a static library; public headers in <module>/include
#   weir_command_module(ingest/cmd USES …)    the same, for a room's commands (linked into `weir`)
#   weir_test_folder(unit LABELS unit)        every *_test.c below tests/unit is one test program
#
# ops/layers.tsv ranks the modules. A USES of a module that is not below stops the configure step, and because a module
# exports only its include/ folder, an undeclared include does not find its file.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
# A C++ file is a shim around a C++ library, nothing else.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Assertions stay on in every build: an invariant that is not checked in production is a comment.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g")

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(weir_flags INTERFACE)
target_compile_definitions(weir_flags INTERFACE _GNU_SOURCE WEIR_VERSION="${PROJECT_VERSION}")
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  -Wvla -Wundef -Wcast-qual -Wformat=2 -Wwrite-strings -Wpointer-arith -Wimplicit-fallthrough
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> # a cut sentence is still a sentence; buffers say so
  -fno-common -fstack-protector-strong -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
# A program needs the libraries that it calls, not those of every module that it could have called.
target_link_options(weir_flags INTERFACE -Wl,--as-needed)
# No search path in a program: the linker of CMake pads the one of a build folder with an empty element, which is the
# folder that a user happens to stand in. All libraries are in folders that the system's own loader knows.
set(CMAKE_SKIP_RPATH ON)
# What tests/lint/hardening reads from the programs. Positions of code and of libraries are chosen at each start, tables
# of functions are read-only from then on, and a large frame cannot jump over the page that guards a stack.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
target_compile_options(weir_flags INTERFACE -fstack-clash-protection)
target_link_options(weir_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(weir_flags INTERFACE -fcf-protection=full)
endif()
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()
if(WEIR_SANITIZE STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(WEIR_SANITIZE STREQUAL "thread")
  # A function that nobody calls is left out: so a program that can start a thread says so in its symbols.
  set(flags -fsanitize=thread -fno-omit-frame-pointer -ffunction-sections -Wl,--gc-sections)
elseif(WEIR_SANITIZE)
  message(FATAL_ERROR "WEIR_SANITIZE is '${WEIR_SANITIZE}'; it may be address, thread or empty")
endif()
if(WEIR_SANITIZE)
  # Compiles in half the time of -O2, and more of what the source says is still there to be watched. What may be
  # uninitialised, gcc judges well at -O2 only: release has that warning.
  set(CMAKE_C_FLAGS_RELEASE "-Og -g -Wno-maybe-uninitialized")
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -g -Wno-maybe-uninitialized")
endif()
if(WEIR_FUZZ)
  list(APPEND flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
endif()
if(WEIR_COVERAGE)
  list(APPEND flags --coverage)
endif()
# The sanitizers watch the plain functions, and without optimisation there is nothing that would know a length.
if(NOT WEIR_SANITIZE AND NOT WEIR_FUZZ AND NOT WEIR_COVERAGE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(weir_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(flags)
  target_compile_options(weir_flags INTERFACE ${flags})
  target_link_options(weir_flags INTERFACE ${flags})
endif()

# --- the layering table -------------------------------------------------------------------------------------

set(WEIR_LAYERS ${CMAKE_SOURCE_DIR}/ops/layers.tsv)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${WEIR_LAYERS})
file(STRINGS ${WEIR_LAYERS} weir_layer_rows REGEX "^[a-z]")

function(weir_layer_rank module result)
  foreach(row IN LISTS weir_layer_rows)
    string(REPLACE "\t" ";" cells "${row}")
    list(GET cells 0 name)
    if(name STREQUAL module)
      list(GET cells 1 rank)
      set(${result} ${rank} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${module}: no row in ops/layers.tsv")
endfunction()

function(weir_target_name module result)
  string(REPLACE "/" "_" name "${module}")
  set(${result} weir_${name} PARENT_SCOPE)
endfunction()

# --- modules ------------------------------------------------------------------------------------------------

function(weir_module module)
  cmake_parse_arguments(M "" "" "USES;LIBS" ${ARGN})
  weir_layer_rank(${module} rank)
  foreach(used IN LISTS M_USES)
    weir_layer_rank(${used} used_rank)
    if(NOT used_rank LESS rank)
      message(FATAL_ERROR "${module} (${rank}) uses ${used} (${used_rank}), which is not below it: see ops/layers.tsv")
    endif()
  endforeach()
  weir_target_name(${module} target)
  set(dir ${CMAKE_SOURCE_DIR}/${module})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.c ${dir}/*.cc)
  add_library(${target} STATIC ${sources})
  if(IS_DIRECTORY ${dir}/include)
    target_include_directories(${target} PUBLIC ${dir}/include)
  endif()
  target_link_libraries(${target} PRIVATE weir_flags)
  foreach(used IN LISTS M_USES)
    weir_target_name(${used} used_target)
    target_link_libraries(${target} PUBLIC ${used_target})
  endforeach()
  target_link_libraries(${target} PRIVATE ${M_LIBS} Threads::Threads m)
  set_property(GLOBAL APPEND PROPERTY WEIR_MODULES ${target})
endfunction()

function(weir_command_module module)
  weir_module(${module} ${ARGN})
  weir_target_name(${module} target)
  set_property(GLOBAL APPEND PROPERTY WEIR_COMMAND_MODULES ${target})
endfunction()

# An optional system library: found, it defines the imported target PkgConfig::NAME.
function(weir_system_library name)
  cmake_parse_arguments(L "REQUIRED" "PACKAGE" "" ${ARGN})
  pkg_check_modules(${name} IMPORTED_TARGET GLOBAL ${L_PACKAGE})
  if(${name}_FOUND)
    set_property(GLOBAL APPEND PROPERTY WEIR_SUMMARY "✓ ${L_PACKAGE} ${${name}_VERSION}")
  elseif(L_REQUIRED)
    message(FATAL_ERROR "${L_PACKAGE} was not found by pkg-config; `ops/check --install` installs what the build needs")
  else()
    set_property(GLOBAL APPEND PROPERTY WEIR_SUMMARY "✗ ${L_PACKAGE} (not found by pkg-config)")
  endif()
endfunction()

function(weir_print_summary)
  get_property(lines GLOBAL PROPERTY WEIR_SUMMARY)
  foreach(line IN LISTS lines)
    message(STATUS "${line}")
  endforeach()
endfunction()

# --- tests --------------------------------------------------------------------------------------------------

# Every *_test.c below tests/FOLDER becomes one program that runs each of its cases in a process of its own.
# A test is found by its place, so a new one needs no edit anywhere else. It may use every module, and the
# private headers of the module whose path it mirrors (tests/unit/store/base/x_test.c sees store/base/*.h). COST is how
# long its tests usually take: ctest starts the longest first, so that none is alone at the end.
function(weir_test_folder folder)
  cmake_parse_arguments(T "" "TIMEOUT;COST" "LABELS" ${ARGN})
  get_property(modules GLOBAL PROPERTY WEIR_MODULES)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.c)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    string(REGEX REPLACE "\\.c$" "" path ${path})
    string(REPLACE "/" "." name ${path})
    add_executable(${name} ${source})
    cmake_path(GET path PARENT_PATH parent)
    string(REGEX REPLACE "^${folder}/?" "" module "${parent}")
    if(module AND IS_DIRECTORY ${CMAKE_SOURCE_DIR}/${module})
      target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/${module})
    endif()
    target_link_libraries(${name} PRIVATE weir_flags weir_test_support ${modules} PkgConfig::CMOCKA PkgConfig::JANSSON
      Threads::Threads m)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77
      COST ${T_COST} ENVIRONMENT "WEIR_PROGRAM=$<TARGET_FILE:weir>;WEIR_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
  endforeach()
endfunction()

# For a program that may load the library of a device's kernels: what that calls.
function(weir_loads_kernels program)
  foreach(symbol weir_assert_fail weir_calloc weir_err_make weir_free)
    target_link_options(${program} PRIVATE LINKER:--export-dynamic-symbol=${symbol})
  endforeach()
endfunction()

# Every *_fuzz.c in tests/FOLDER is one target over LLVMFuzzerTestOneInput, with its seeds in corpus/NAME. With
# WEIR_FUZZ it is a libFuzzer program (run by ops/check); otherwise a test that replays the corpus. It may use every
# module but the commands.
function(weir_fuzz_folder folder)
  get_property(modules GLOBAL PROPERTY WEIR_MODULES)
  get_property(command_modules GLOBAL PROPERTY WEIR_COMMAND_MODULES)
  list(REMOVE_ITEM modules ${command_modules})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_fuzz.c)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" corpus ${name})
    set(target ${folder}.${name})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE weir_flags ${modules} PkgConfig::JANSSON Threads::Threads m)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    # The entry point is libFuzzer's, which declares it nowhere.
    target_compile_options(${target} PRIVATE -Wno-missing-prototypes)
    if(WEIR_FUZZ)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
      target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/replay.c)
      add_test(NAME ${target} COMMAND ${target} ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/corpus/${corpus})
      set_tests_properties(${target} PROPERTIES LABELS "fuzz" TIMEOUT 3600)
    endif()
  endforeach()
endfunction()

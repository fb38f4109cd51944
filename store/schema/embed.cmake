# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C source that holds each schema of FOLDER under its name:  cmake -DFOLDER=… -DOUT=… -P embed.cmake
file(GLOB schemas ${FOLDER}/*.yaml)
list(SORT schemas)
set(arrays "")
set(rows "")
foreach(schema IN LISTS schemas)
  get_filename_component(name ${schema} NAME_WE)
  file(READ ${schema} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char text_${name}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)text_${name}, sizeof text_${name} - 1},\n")
endforeach()
file(WRITE ${OUT} "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by store/schema/embed.cmake; edit the schemas, not this. */
#include \"shipped.h\"

${arrays}
const weir_schema_shipped weir_schema_shipped_files[] = {
${rows}};
const size_t weir_schema_shipped_files_count = sizeof weir_schema_shipped_files / sizeof weir_schema_shipped_files[0];
")

# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C source that holds FILE behind a function weir_api_NAME:
#   cmake -DFILE=… -DNAME=… -DOUT=… -P embed.cmake
get_filename_component(file ${FILE} NAME)
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by http/api/embed.cmake; edit ${file}, not this. */
#include <weir/http/api/api.h>

static const unsigned char text[] = {${bytes}0};

const char *weir_api_${NAME}(size_t *lengthp) {
    *lengthp = sizeof text - 1;
    return (const char *)text;
}
")

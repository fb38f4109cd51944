# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C source that holds FILE:  cmake -DFILE=… -DOUT=… -P embed.cmake
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by http/api/embed.cmake; edit openapi.json, not this. */
#include <weir/http/api.h>

static const unsigned char text[] = {${bytes}0};

const char *weir_api_openapi(size_t *lengthp) {
    *lengthp = sizeof text - 1;
    return (const char *)text;
}
")

/* SPDX-License-Identifier: Apache-2.0 */
/* blocks_format.h - the numbers of a sorted file's format that who reads one and who writes one must agree about. */
#ifndef WEIR_STORE_ENGINE_BLOCKS_FORMAT_H
#define WEIR_STORE_ENGINE_BLOCKS_FORMAT_H

/* The end of a file: the kind of checksum, where two blocks lie, zeros, the version, the mark. The first of the blocks
 * names others, and the second is the index. */
#define WEIR_BLOCKS_PLACES_END     41u
#define WEIR_BLOCKS_VERSION_AT     41u
#define WEIR_BLOCKS_MARK_AT        45u
#define WEIR_BLOCKS_FOOTER_MARK    0x88e241b785f4cff7u
#define WEIR_BLOCKS_FORMAT_VERSION 5u
#define WEIR_BLOCKS_CHECKSUM_XXH3  4u
/* The byte behind a block, which says how it is compressed, goes into the block's checksum with this factor. */
#define WEIR_BLOCKS_LAST_BYTE_FACTOR 0x6b9083d9u

/* Behind each key of a data block: what kind of record it is, and the number of the write that it came with. */
#define WEIR_BLOCKS_SUFFIX_BYTES 8u
#define WEIR_BLOCKS_KIND_PUT     1u

#endif /* WEIR_STORE_ENGINE_BLOCKS_FORMAT_H */

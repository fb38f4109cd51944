/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joining.h - while files are merged: the bundles that a list has in several of them become few.
 *
 * Most lists get an entry or two in each seal, and a bundle for them. A merge makes neighbours of these; carried along
 * as they are, each would be looked at by every reader of the list, and merged again and again. So what a list has in
 * the merge is bundled anew, as a seal would have done that had all of it.
 *
 *     list       seal 1: e9 e8    seal 2: e7    seal 3: e6 e5 e4     ─►    one bundle: e9 … e4
 *
 * INVARIANTS: each is cited by an assert and by a test of the same name
 *
 *   JOIN-J1  What comes out has the entries that went in and no others, in the order of keys; what is bundled anew has
 *            each once.
 *   JOIN-J2  A bundle that is not as it was written comes out as it went in, so that who reads it finds the damage.
 */
#ifndef WEIR_STORE_JOINING_H
#define WEIR_STORE_JOINING_H

#include <weir/store/engine/engine.h>

/* For weir_engine_opts. */
extern const weir_engine_joining weir_joining;

#endif /* WEIR_STORE_JOINING_H */

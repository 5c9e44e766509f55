/* SPDX-License-Identifier: Apache-2.0 */
/* footprint.h - what a program that runs for months need not keep resident.
 *
 * Starting touches much that is never looked at again: the symbols and relocations of some forty
 * libraries, their initialisers, and the heap that the first lists passed through. */
#ifndef DROVER_BASE_FOOTPRINT_H
#define DROVER_BASE_FOOTPRINT_H

/* Lets the system have what is not in use. Pages of programs and libraries that are never written
 * to are mapped again as soon as they are looked at. */
void footprint_shrink(void);

#endif

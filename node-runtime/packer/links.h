/*
 * Hard links of layers below that were written through one of their names.
 *
 * The overlay keeps such a file in its index, and the upper holds only the names that were used. A layer made of that upper would show
 * the new content under those, and the old one under the others. So the names that are missing are given to the upper first, by the
 * overlay itself: what would change one makes it a link of the file in the upper, and it is given the mode that it has.
 */
#ifndef DSEC_PACKER_LINKS_H
#define DSEC_PACKER_LINKS_H

/*
 * `work`: the overlay's work directory; `merged`: the tree as the sandbox sees it, which is at rest. Looks at the whole tree only when
 * the index holds a file that has names outside of the upper.
 */
void links_complete(int work, const char *merged);

#endif

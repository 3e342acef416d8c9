/* Set is a set of nodes, with one bit for each node. Walks and some runs have more nodes. */
#ifndef Set
#ifdef WALK
#define MANYNODES
#endif
#ifdef MANYNODES
#define Set int
#define MAXNODES 16
#else
#define Set byte
#define MAXNODES 8
#endif
#define NONE 255
#define bit(k) (1 << (k))
#endif

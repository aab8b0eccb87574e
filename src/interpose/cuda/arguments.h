/* arguments.h - a row of signatures.def as C: from the types of a function's arguments, its
 * parameters, their names and a struct of them. There are up to fifteen, called a to o. */
#ifndef GRETA_INTERPOSE_CUDA_ARGUMENTS_H
#define GRETA_INTERPOSE_CUDA_ARGUMENTS_H

#define ARGUMENTS_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, count, ...) count
#define ARGUMENTS_COUNT(...)                                                                       \
    ARGUMENTS_PICK(__VA_ARGS__, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ARGUMENTS_JOIN(prefix, count) ARGUMENTS_JOIN_EXPANDED(prefix, count)
#define ARGUMENTS_JOIN_EXPANDED(prefix, count) prefix##count

/* (int, size_t) -> int a, size_t b */
#define ARGUMENTS_DECLARED(...)                                                                    \
    ARGUMENTS_JOIN(ARGUMENTS_DECLARED_, ARGUMENTS_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define ARGUMENTS_DECLARED_1(A) A a
#define ARGUMENTS_DECLARED_2(A, B) ARGUMENTS_DECLARED_1(A), B b
#define ARGUMENTS_DECLARED_3(A, B, C) ARGUMENTS_DECLARED_2(A, B), C c
#define ARGUMENTS_DECLARED_4(A, B, C, D) ARGUMENTS_DECLARED_3(A, B, C), D d
#define ARGUMENTS_DECLARED_5(A, B, C, D, E) ARGUMENTS_DECLARED_4(A, B, C, D), E e
#define ARGUMENTS_DECLARED_6(A, B, C, D, E, F) ARGUMENTS_DECLARED_5(A, B, C, D, E), F f
#define ARGUMENTS_DECLARED_7(A, B, C, D, E, F, G) ARGUMENTS_DECLARED_6(A, B, C, D, E, F), G g
#define ARGUMENTS_DECLARED_8(A, B, C, D, E, F, G, H) ARGUMENTS_DECLARED_7(A, B, C, D, E, F, G), H h
#define ARGUMENTS_DECLARED_9(A, B, C, D, E, F, G, H, I)                                            \
    ARGUMENTS_DECLARED_8(A, B, C, D, E, F, G, H), I i
#define ARGUMENTS_DECLARED_10(A, B, C, D, E, F, G, H, I, J)                                        \
    ARGUMENTS_DECLARED_9(A, B, C, D, E, F, G, H, I), J j
#define ARGUMENTS_DECLARED_11(A, B, C, D, E, F, G, H, I, J, K)                                     \
    ARGUMENTS_DECLARED_10(A, B, C, D, E, F, G, H, I, J), K k
#define ARGUMENTS_DECLARED_12(A, B, C, D, E, F, G, H, I, J, K, L)                                  \
    ARGUMENTS_DECLARED_11(A, B, C, D, E, F, G, H, I, J, K), L l
#define ARGUMENTS_DECLARED_13(A, B, C, D, E, F, G, H, I, J, K, L, M)                               \
    ARGUMENTS_DECLARED_12(A, B, C, D, E, F, G, H, I, J, K, L), M m
#define ARGUMENTS_DECLARED_14(A, B, C, D, E, F, G, H, I, J, K, L, M, N)                            \
    ARGUMENTS_DECLARED_13(A, B, C, D, E, F, G, H, I, J, K, L, M), N n
#define ARGUMENTS_DECLARED_15(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O)                         \
    ARGUMENTS_DECLARED_14(A, B, C, D, E, F, G, H, I, J, K, L, M, N), O o

/* (int, size_t) -> int a; size_t b; */
#define ARGUMENTS_FIELDS(...)                                                                      \
    ARGUMENTS_JOIN(ARGUMENTS_FIELDS_, ARGUMENTS_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define ARGUMENTS_FIELDS_1(A) A a;
#define ARGUMENTS_FIELDS_2(A, B) ARGUMENTS_FIELDS_1(A) B b;
#define ARGUMENTS_FIELDS_3(A, B, C) ARGUMENTS_FIELDS_2(A, B) C c;
#define ARGUMENTS_FIELDS_4(A, B, C, D) ARGUMENTS_FIELDS_3(A, B, C) D d;
#define ARGUMENTS_FIELDS_5(A, B, C, D, E) ARGUMENTS_FIELDS_4(A, B, C, D) E e;
#define ARGUMENTS_FIELDS_6(A, B, C, D, E, F) ARGUMENTS_FIELDS_5(A, B, C, D, E) F f;
#define ARGUMENTS_FIELDS_7(A, B, C, D, E, F, G) ARGUMENTS_FIELDS_6(A, B, C, D, E, F) G g;
#define ARGUMENTS_FIELDS_8(A, B, C, D, E, F, G, H) ARGUMENTS_FIELDS_7(A, B, C, D, E, F, G) H h;
#define ARGUMENTS_FIELDS_9(A, B, C, D, E, F, G, H, I)                                              \
    ARGUMENTS_FIELDS_8(A, B, C, D, E, F, G, H) I i;
#define ARGUMENTS_FIELDS_10(A, B, C, D, E, F, G, H, I, J)                                          \
    ARGUMENTS_FIELDS_9(A, B, C, D, E, F, G, H, I) J j;
#define ARGUMENTS_FIELDS_11(A, B, C, D, E, F, G, H, I, J, K)                                       \
    ARGUMENTS_FIELDS_10(A, B, C, D, E, F, G, H, I, J) K k;
#define ARGUMENTS_FIELDS_12(A, B, C, D, E, F, G, H, I, J, K, L)                                    \
    ARGUMENTS_FIELDS_11(A, B, C, D, E, F, G, H, I, J, K) L l;
#define ARGUMENTS_FIELDS_13(A, B, C, D, E, F, G, H, I, J, K, L, M)                                 \
    ARGUMENTS_FIELDS_12(A, B, C, D, E, F, G, H, I, J, K, L) M m;
#define ARGUMENTS_FIELDS_14(A, B, C, D, E, F, G, H, I, J, K, L, M, N)                              \
    ARGUMENTS_FIELDS_13(A, B, C, D, E, F, G, H, I, J, K, L, M) N n;
#define ARGUMENTS_FIELDS_15(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O)                           \
    ARGUMENTS_FIELDS_14(A, B, C, D, E, F, G, H, I, J, K, L, M, N) O o;

/* (int, size_t) -> a, b */
#define ARGUMENTS_NAMES(...) ARGUMENTS_JOIN(ARGUMENTS_NAMES_, ARGUMENTS_COUNT(__VA_ARGS__))
#define ARGUMENTS_NAMES_1 a
#define ARGUMENTS_NAMES_2 ARGUMENTS_NAMES_1, b
#define ARGUMENTS_NAMES_3 ARGUMENTS_NAMES_2, c
#define ARGUMENTS_NAMES_4 ARGUMENTS_NAMES_3, d
#define ARGUMENTS_NAMES_5 ARGUMENTS_NAMES_4, e
#define ARGUMENTS_NAMES_6 ARGUMENTS_NAMES_5, f
#define ARGUMENTS_NAMES_7 ARGUMENTS_NAMES_6, g
#define ARGUMENTS_NAMES_8 ARGUMENTS_NAMES_7, h
#define ARGUMENTS_NAMES_9 ARGUMENTS_NAMES_8, i
#define ARGUMENTS_NAMES_10 ARGUMENTS_NAMES_9, j
#define ARGUMENTS_NAMES_11 ARGUMENTS_NAMES_10, k
#define ARGUMENTS_NAMES_12 ARGUMENTS_NAMES_11, l
#define ARGUMENTS_NAMES_13 ARGUMENTS_NAMES_12, m
#define ARGUMENTS_NAMES_14 ARGUMENTS_NAMES_13, n
#define ARGUMENTS_NAMES_15 ARGUMENTS_NAMES_14, o

#endif

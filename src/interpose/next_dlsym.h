/* next_dlsym.h - for preloaded libraries that export a dlsym of their own. */
#ifndef GRETA_INTERPOSE_NEXT_DLSYM_H
#define GRETA_INTERPOSE_NEXT_DLSYM_H

typedef void *(*interpose_dlsym)(void *library, const char *name);

/* The dlsym that the program would have without this library: the next preloaded library's, or the
 * C library's. NULL: there is none. Takes no lock and no memory, so that it may be called before
 * the program's libraries are initialised, and from inside the program's malloc. */
interpose_dlsym interpose_next_dlsym(void);

/* Defines the exported dlsym, in all versions that a program may ask dlvsym for: one that wraps
 * dlsym itself finds the real one by such a version, and must find ours before it. `function` is
 * declared like dlsym; exports.map has the versions. */
#define INTERPOSE_EXPORT_DLSYM(function)                                                           \
    __asm__(".symver " #function "_oldest, dlsym@GLIBC_2.2.5");                                    \
    __asm__(".symver " #function "_older, dlsym@GLIBC_2.17");                                      \
    __asm__(".symver " #function ", dlsym@@GLIBC_2.34");                                           \
    extern __typeof__(function) function##_oldest                                                  \
        __attribute__((alias(#function), visibility("default")));                                  \
    extern __typeof__(function) function##_older                                                   \
        __attribute__((alias(#function), visibility("default")))

#endif

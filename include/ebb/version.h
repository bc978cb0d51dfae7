/* ebb/version.h - the version of the library, and the macros that surround the declarations of each
 * public header. */
#ifndef EBB_VERSION_H
#define EBB_VERSION_H

#define EBB_VERSION_MAJOR 0
#define EBB_VERSION_MINOR 1
#define EBB_VERSION_PATCH 0

#define EBB_STR_(x) #x
#define EBB_STR(x)  EBB_STR_(x)
#define EBB_VERSION \
    EBB_STR(EBB_VERSION_MAJOR) "." EBB_STR(EBB_VERSION_MINOR) "." EBB_STR(EBB_VERSION_PATCH)
/* For #if: EBB_VERSION_NUMBER >= 100 is 0.1.0 or later. */
#define EBB_VERSION_NUMBER (EBB_VERSION_MAJOR * 10000 + EBB_VERSION_MINOR * 100 + EBB_VERSION_PATCH)

/* Declarations between EBB_API_BEGIN and EBB_API_END have C linkage and are exported by the shared
 * library; all its other symbols are hidden. */
#ifdef __cplusplus
#define EBB_EXTERN_C_BEGIN extern "C" {
#define EBB_EXTERN_C_END   }
#else
#define EBB_EXTERN_C_BEGIN
#define EBB_EXTERN_C_END
#endif
#define EBB_API_BEGIN EBB_EXTERN_C_BEGIN _Pragma("GCC visibility push(default)")
#define EBB_API_END   _Pragma("GCC visibility pop") EBB_EXTERN_C_END

#define EBB_MUST_CHECK __attribute__((warn_unused_result))

EBB_API_BEGIN
/* EBB_VERSION of the library that is linked.  While the major version is 0, a new minor version may
 * change structs and functions, and the soname with it (libebb.so.0.1); a new patch version changes
 * neither. */
const char *ebb_version(void);
EBB_API_END

#endif

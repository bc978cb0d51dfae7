/* store/sealed_vfs.h - files of SQLite that are sealed: a VFS above the usual one, under which the
 * database and its write-ahead log have no byte that can be read.
 *
 *  database  pages of 4096 bytes, of which SQLite leaves 40 (reserved bytes): there stand a page's
 *            nonce and tag.  The first 16 bytes of the file are EBB_SEALED_MAGIC, and for SQLite
 *            its own mark
 *  log       its header, and of each frame the header and the page, sealed one by one: a frame is
 *            80 bytes longer than SQLite knows.  What does not open reads as zeros where SQLite
 *            looks for the log's end, as a torn frame always did
 *  others    there are none: a rollback journal or a temporary file is refused, so nothing can
 *            reach the disk in the clear by an oversight
 *
 * A page that was changed from outside is damage (SQLITE_CORRUPT), never text. */
#ifndef EBB_CHAT_SEALED_VFS_H
#define EBB_CHAT_SEALED_VFS_H
#include "ebb/status.h"
#include "seal/seal.h"

#define EBB_SEALED_VFS   "ebb-sealed"
#define EBB_SEALED_PAGE  4096u
#define EBB_SEALED_MAGIC "ebb sealed db 1\n"     /* 16 bytes */
#define EBB_PLAIN_MAGIC  "SQLite format 3"       /* 16 bytes with its zero */

/* From here on SQLite knows it, and what it opens with it is sealed by `s`, which must stay as
 * long.  Errors: IO, where SQLite has no usual one that fits. */
EBB_MUST_CHECK
ebb_status ebb_sealed_vfs_register(const ebb_seal *s, ebb_error *err);

/* A page of the database, number `place` (the first is 1), sealed and opened.  The last 40 bytes of
 * a plain page are zero.  false: it is none of ours, or damaged. */
void ebb_sealed_page_close(const ebb_seal *s, uint64_t place,
                           const uint8_t plain[EBB_SEALED_PAGE], uint8_t sealed[EBB_SEALED_PAGE]);
EBB_MUST_CHECK
bool ebb_sealed_page_open(const ebb_seal *s, uint64_t place, const uint8_t sealed[EBB_SEALED_PAGE],
                          uint8_t plain[EBB_SEALED_PAGE]);
/* The plain page 1 of a database that has nothing in it. */
void ebb_sealed_empty_page(uint8_t out[EBB_SEALED_PAGE]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/footprint.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A segment without PF_W is the same as in its file: nothing is lost. What relocation wrote to
 * stands in segments that have it, also where it is read-only afterwards. */
static int leave_out(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    uintptr_t page = *(const uintptr_t *)context;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W))
            continue;
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        uintptr_t end = (begin + part->p_filesz) & ~(page - 1);
        begin = (begin + page - 1) & ~(page - 1);
        if (begin < end) /* where it cannot be done, as in the kernel's own, nothing happens */
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    return 0;
}

void footprint_shrink(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    malloc_trim(0);
    dl_iterate_phdr(leave_out, &page);
}

/* For Wine 8, which lacks this library of Windows 10: the one function of it that Rust's standard library calls. */

#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length); /* RtlGenRandom, ntsecapi.h */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
  for (SIZE_T at = 0; at < size;) {
    ULONG part = size - at > 0x10000 ? 0x10000 : (ULONG)(size - at);
    if (!SystemFunction036(data + at, part)) return FALSE;
    at += part;
  }
  return TRUE;
}

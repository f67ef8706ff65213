/* A stand-in for fwpuclnt.dll, by the headers of MinGW: writes down what is submitted to the Windows Filtering Platform, each structure
 * decoded, as JSON lines in the file that FWPUCLNT_LOG names. It filters nothing. What it does not know it writes as such, so that
 * whoever compares finds a difference. */

#include <windows.h>
#include <initguid.h>
#include <fwptypes.h>
#include <fwpmtypes.h>
#include <sddl.h>
#include <stdio.h>

static FILE *out(void) {
  char path[MAX_PATH];
  if (!GetEnvironmentVariableA("FWPUCLNT_LOG", path, sizeof path)) abort();
  FILE *file = fopen(path, "ab");
  if (!file) abort();
  return file;
}

static DWORD end(FILE *file) {
  fputs("}\n", file);
  fclose(file);
  return ERROR_SUCCESS;
}

static FILE *call(const char *name) {
  FILE *file = out();
  fprintf(file, "{\"call\":\"%s\"", name);
  return file;
}

static void guid(FILE *file, const GUID *key) {
  if (!key) {
    fputs("null", file);
    return;
  }
  fprintf(file, "\"{%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x}\"", key->Data1, key->Data2, key->Data3, key->Data4[0],
          key->Data4[1], key->Data4[2], key->Data4[3], key->Data4[4], key->Data4[5], key->Data4[6], key->Data4[7]);
}

/* Every unit that is not plain as \uXXXX, which JSON has for all of them. */
static void text(FILE *file, const WCHAR *words) {
  if (!words) {
    fputs("null", file);
    return;
  }
  fputc('"', file);
  for (; *words; words++) {
    if (*words >= ' ' && *words < 0x7f && *words != '"' && *words != '\\')
      fputc(*words, file);
    else
      fprintf(file, "\\u%04x", *words);
  }
  fputc('"', file);
}

static void bytes(FILE *file, const UINT8 *at, UINT32 count) {
  fputc('"', file);
  for (UINT32 i = 0; i < count; i++) fprintf(file, "%02x", at[i]);
  fputc('"', file);
}

static void descriptor(FILE *file, const FWP_BYTE_BLOB *blob) {
  WCHAR *words = NULL;
  DWORD all = OWNER_SECURITY_INFORMATION | GROUP_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION | SACL_SECURITY_INFORMATION;
  if (!IsValidSecurityDescriptor(blob->data) || GetSecurityDescriptorLength(blob->data) != blob->size ||
      !ConvertSecurityDescriptorToStringSecurityDescriptorW(blob->data, SDDL_REVISION_1, all, &words, NULL)) {
    fputs("null", file);
    return;
  }
  text(file, words);
  LocalFree(words);
}

static void value(FILE *file, const FWP_VALUE0 *value) {
  fprintf(file, "{\"type\":%d,\"value\":", value->type);
  switch (value->type) {
    case FWP_EMPTY: fputs("null", file); break;
    case FWP_UINT8: fprintf(file, "%u", value->uint8); break;
    case FWP_UINT16: fprintf(file, "%u", value->uint16); break;
    case FWP_UINT32: fprintf(file, "%u", value->uint32); break;
    case FWP_UINT64: fprintf(file, "%llu", *value->uint64); break;
    case FWP_BYTE_ARRAY16_TYPE: bytes(file, value->byteArray16->byteArray16, 16); break;
    case FWP_SECURITY_DESCRIPTOR_TYPE: descriptor(file, value->sd); break;
    default: fputs("\"unknown\"", file);
  }
  fputc('}', file);
}

static void condition(FILE *file, const FWPM_FILTER_CONDITION0 *condition) {
  const FWP_CONDITION_VALUE0 *asked = &condition->conditionValue;
  fputs("{\"field\":", file);
  guid(file, &condition->fieldKey);
  fprintf(file, ",\"match\":%d,\"value\":", condition->matchType);
  switch ((int)asked->type) {
    case FWP_V4_ADDR_MASK:
      fprintf(file, "{\"type\":%d,\"value\":[%u,%u]}", asked->type, asked->v4AddrMask->addr, asked->v4AddrMask->mask);
      break;
    case FWP_V6_ADDR_MASK:
      fprintf(file, "{\"type\":%d,\"value\":[", asked->type);
      bytes(file, asked->v6AddrMask->addr, 16);
      fprintf(file, ",%u]}", asked->v6AddrMask->prefixLength);
      break;
    case FWP_RANGE_TYPE:
      fprintf(file, "{\"type\":%d,\"value\":[", asked->type);
      value(file, &asked->rangeValue->valueLow);
      fputc(',', file);
      value(file, &asked->rangeValue->valueHigh);
      fputs("]}", file);
      break;
    default: {
      FWP_VALUE0 single;
      single.type = asked->type;
      single.uint64 = asked->uint64;
      value(file, &single);
    }
  }
  fputc('}', file);
}

static void display(FILE *file, const FWPM_DISPLAY_DATA0 *data) {
  fputs(",\"name\":", file);
  text(file, data->name);
  fputs(",\"description\":", file);
  text(file, data->description);
}

#define EXPORT __declspec(dllexport) DWORD WINAPI

static char engine;
static BOOL in_transaction;

static FILE *inside(const char *name, HANDLE handle) {
  FILE *file = call(name);
  fprintf(file, ",\"engine\":%s,\"transaction\":%s", handle == &engine ? "true" : "false", in_transaction ? "true" : "false");
  return file;
}

EXPORT FwpmEngineOpen0(const WCHAR *server, UINT32 authentication, void *identity, const FWPM_SESSION0 *session, HANDLE *handle) {
  FILE *file = call("FwpmEngineOpen0");
  fprintf(file, ",\"local\":%s,\"authentication\":%u,\"session\":%s", server || identity ? "false" : "true", authentication,
          session ? "true" : "false");
  *handle = &engine;
  return end(file);
}

EXPORT FwpmEngineClose0(HANDLE handle) { return end(inside("FwpmEngineClose0", handle)); }

EXPORT FwpmTransactionBegin0(HANDLE handle, UINT32 flags) {
  FILE *file = inside("FwpmTransactionBegin0", handle);
  fprintf(file, ",\"flags\":%u", flags);
  in_transaction = TRUE;
  return end(file);
}

EXPORT FwpmTransactionCommit0(HANDLE handle) {
  FILE *file = inside("FwpmTransactionCommit0", handle);
  in_transaction = FALSE;
  return end(file);
}

EXPORT FwpmTransactionAbort0(HANDLE handle) {
  FILE *file = inside("FwpmTransactionAbort0", handle);
  in_transaction = FALSE;
  return end(file);
}

EXPORT FwpmProviderAdd0(HANDLE handle, const FWPM_PROVIDER0 *provider, PSECURITY_DESCRIPTOR sd) {
  FILE *file = inside("FwpmProviderAdd0", handle);
  fputs(",\"key\":", file);
  guid(file, &provider->providerKey);
  display(file, &provider->displayData);
  fprintf(file, ",\"flags\":%u,\"data\":%u,\"service\":", (unsigned)provider->flags, (unsigned)provider->providerData.size);
  text(file, provider->serviceName);
  fprintf(file, ",\"sd\":%s", sd ? "true" : "false");
  return end(file);
}

EXPORT FwpmSubLayerAdd0(HANDLE handle, const FWPM_SUBLAYER0 *sublayer, PSECURITY_DESCRIPTOR sd) {
  FILE *file = inside("FwpmSubLayerAdd0", handle);
  fputs(",\"key\":", file);
  guid(file, &sublayer->subLayerKey);
  display(file, &sublayer->displayData);
  fprintf(file, ",\"flags\":%u,\"data\":%u,\"weight\":%u,\"provider\":", (unsigned)sublayer->flags, (unsigned)sublayer->providerData.size,
          sublayer->weight);
  guid(file, sublayer->providerKey);
  fprintf(file, ",\"sd\":%s", sd ? "true" : "false");
  return end(file);
}

EXPORT FwpmFilterAdd0(HANDLE handle, const FWPM_FILTER0 *filter, PSECURITY_DESCRIPTOR sd, UINT64 *id) {
  FILE *file = inside("FwpmFilterAdd0", handle);
  fputs(",\"key\":", file);
  guid(file, &filter->filterKey);
  display(file, &filter->displayData);
  fprintf(file, ",\"flags\":%u,\"data\":%u,\"context\":%llu,\"provider\":", (unsigned)filter->flags, (unsigned)filter->providerData.size,
          filter->rawContext);
  guid(file, filter->providerKey);
  fputs(",\"layer\":", file);
  guid(file, &filter->layerKey);
  fputs(",\"sublayer\":", file);
  guid(file, &filter->subLayerKey);
  fputs(",\"weight\":", file);
  value(file, &filter->weight);
  fprintf(file, ",\"action\":%u,\"conditions\":[", (unsigned)filter->action.type);
  for (UINT32 i = 0; i < filter->numFilterConditions; i++) {
    if (i) fputc(',', file);
    condition(file, &filter->filterCondition[i]);
  }
  fprintf(file, "],\"sd\":%s,\"id\":%s", sd ? "true" : "false", id ? "true" : "false");
  return end(file);
}

static DWORD delete(const char *name, HANDLE handle, const GUID *key) {
  FILE *file = inside(name, handle);
  fputs(",\"key\":", file);
  guid(file, key);
  return end(file);
}

EXPORT FwpmFilterDeleteByKey0(HANDLE handle, const GUID *key) { return delete("FwpmFilterDeleteByKey0", handle, key); }
EXPORT FwpmSubLayerDeleteByKey0(HANDLE handle, const GUID *key) { return delete("FwpmSubLayerDeleteByKey0", handle, key); }
EXPORT FwpmProviderDeleteByKey0(HANDLE handle, const GUID *key) { return delete("FwpmProviderDeleteByKey0", handle, key); }

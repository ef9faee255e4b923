// A CUDA driver without a device, for tests of the client: what a consumer of
// device memory calls. Device memory is a memfd in the form of the test driver
// in Go (package cuda/internal/fake), so that owners of either kind can share
// with it. The processor cannot read it at its addresses. Streams do their work
// when fake_run is called, or, after fake_auto, when an event is asked for.
//
// OLD is a driver before 12.5, without cuCtxRecordEvent. fake_* are controls.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int result;
enum { OK = 0, VALUE = 1, OOM = 2, UNINIT = 3, NO_DEVICE = 100, BAD_DEVICE = 101, BAD_CONTEXT = 201, MAPPED = 208, HANDLE = 400, NOT_READY = 600, UNSUPPORTED = 801 };
enum { PAGE = 4096, MARKS = 512 };
#define MAGIC 0x454b4146554e4554ull

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int devices = 1, initialised, automatic, no_read_only, calls_on_host;
static char failing[64];
static int failure;
static __thread int depth;

// Everything that is created, so that what is left shows.

enum { NONE, MEMORY, RESERVED, ALLOCATED, EVENT, SHARED_EVENT, OPENED };
typedef struct {
	int kind, mapped, access;
	u64 at, size;
	char *data; // where this library itself reads and writes the bytes
	char *file;
	u64 file_size, order, nonce;
	int fd; // of OPENED, with the lock that says so to its owner
} object;
static object objects[1024];

static object *add(int kind) {
	for (int i = 0; i < 1024; i++)
		if (!objects[i].kind) {
			objects[i] = (object){.kind = kind};
			return &objects[i];
		}
	abort();
}
static object *get(int kind, u64 h) {
	object *o = (object *)h;
	return o >= objects && o < objects + 1024 && o->kind == kind ? o : 0;
}
static object *at(u64 p) {
	for (int i = 0; i < 1024; i++)
		if ((objects[i].kind == RESERVED || objects[i].kind == ALLOCATED || objects[i].kind == OPENED) && p >= objects[i].at && p < objects[i].at + objects[i].size) return &objects[i];
	return 0;
}

// The streams: one queue in the order of submission.

typedef struct { u64 stream, number; int kind; object *event; u64 to, from, size; void *host; u64 sequence; int done; } op;
enum { COPY, READ, WAIT, SPIN };
static op queue[4096];
static int queued;
static u64 numbers;

static char *bytes(u64 p, u64 n, int write) {
	object *o = at(p);
	if (o && o->kind == OPENED && *(u32 *)(o->file + o->file_size - PAGE + 32) == 2) {
		fprintf(stderr, "libcuda.c: a stream uses memory that its owner has freed\n");
		abort();
	}
	if (!o || p + n > o->at + o->size || !o->data || o->access < (write ? 3 : 1)) {
		fprintf(stderr, "libcuda.c: a stream uses %llu bytes at %#llx that it may not\n", (unsigned long long)n, (unsigned long long)p);
		abort();
	}
	return o->data + (p - o->at);
}
static int ready(op *o) {
	if (o->kind != WAIT || !o->event->file) return 1;
	u64 reached = __atomic_load_n((u64 *)(o->event->file + o->sequence % MARKS * 16), __ATOMIC_SEQ_CST);
	return reached >= o->sequence;
}
static void advance(void) {
	for (int more = 1; more;) {
		more = 0;
		for (int i = 0; i < queued; i++) {
			op *o = &queue[i];
			int first = !o->done;
			for (int j = 0; j < i && first; j++) first = queue[j].done || queue[j].stream != o->stream;
			if (!first || !ready(o) || o->kind == SPIN) continue;
			if (o->kind == COPY) memcpy(bytes(o->to, o->size, 1), bytes(o->from, o->size, 0), o->size);
			if (o->kind == READ) memcpy(o->host, bytes(o->from, o->size, 0), o->size);
			o->done = more = 1;
		}
	}
	while (queued && queue[queued - 1].done) queued--;
}
static void submit(op o) {
	if (queued == 4096) abort();
	o.number = ++numbers;
	queue[queued++] = o;
}
static int complete_to(u64 number) {
	for (int i = 0; i < queued; i++)
		if (!queue[i].done && queue[i].number <= number) return 0;
	return 1;
}

#define CONTROL pthread_mutex_lock(&lock)
#define END pthread_mutex_unlock(&lock)
void fake_reset(void) { CONTROL; devices = 1; automatic = no_read_only = failure = calls_on_host = 0; failing[0] = 0; END; }
void fake_devices(int n) { devices = n; }
void fake_auto(int on) { automatic = on; }
void fake_no_read_only(void) { no_read_only = 1; }
void fake_fail(const char *name, int code) { snprintf(failing, sizeof failing, "%s", name); failure = code; }
int fake_run(void) { CONTROL; advance(); int n = 0; for (int i = 0; i < queued; i++) n += !queue[i].done; END; return n; }
// fake_read has a stream read bytes of the device.
void fake_read(u64 stream, u64 p, u64 n, void *to) { CONTROL; submit((op){.stream = stream, .kind = READ, .from = p, .size = n, .host = to}); END; }
// fake_spin is work that runs until fake_stop.
void fake_spin(u64 stream) { CONTROL; submit((op){.stream = stream, .kind = SPIN}); END; }
void fake_stop(void) { CONTROL; for (int i = 0; i < queued; i++) if (queue[i].kind == SPIN) queue[i].done = 1; END; }
int fake_live(void) { int n = 0; for (int i = 0; i < 1024; i++) n += objects[i].kind != NONE; return n; }
int fake_synchronised(void) { return calls_on_host; }

// Calls.

static result enter(const char *name) {
	pthread_mutex_lock(&lock);
	if (failure && !strcmp(name, failing)) return failure;
	return initialised || !strcmp(name, "cuInit") ? OK : UNINIT;
}
static result leave(result r) { pthread_mutex_unlock(&lock); return r; }
#define CALL result refused = enter(__func__); if (refused) return leave(refused)
#define CTX CALL; if (!depth) return leave(BAD_CONTEXT)
#define WANT(ok, code) if (!(ok)) return leave(code)

result cuInit(u32 flags) { CALL; WANT(!flags, VALUE); WANT(devices, NO_DEVICE); initialised = 1; return leave(OK); }
result cuGetErrorName(result r, const char **s) { *s = r == OOM ? "CUDA_ERROR_OUT_OF_MEMORY" : r == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OF_TEST"; return OK; }
result cuGetErrorString(result r, const char **s) { *s = r == OOM ? "out of memory" : r == NO_DEVICE ? "no CUDA-capable device is detected" : "an error of the test"; return OK; }
result cuDeviceGetCount(int *n) { CALL; *n = devices; return leave(OK); }
result cuDeviceGet(int *d, int i) { CALL; WANT(i >= 0 && i < devices, BAD_DEVICE); *d = i; return leave(OK); }
result cuDeviceGetUuid_v2(unsigned char *uuid, int d) { CALL; memset(uuid, 0, 16); memcpy(uuid, "fake", 4); uuid[15] = d; return leave(OK); }
result cuDevicePrimaryCtxRetain(void **c, int d) { CALL; *c = (void *)(u64)(0x100 + d); return leave(OK); }
result cuCtxPushCurrent_v2(void *c) { CALL; WANT((u64)c >> 4 == 0x10, BAD_CONTEXT); depth++; return leave(OK); }
result cuCtxPopCurrent_v2(void **c) { CALL; WANT(depth, BAD_CONTEXT); depth--; *c = 0; return leave(OK); }
result cuCtxSynchronize(void) {
	CTX;
	calls_on_host++;
	for (int left = 1; left;) {
		advance();
		left = 0;
		for (int i = 0; i < queued; i++) left += !queue[i].done;
		if (left) { END; usleep(1000); CONTROL; }
	}
	return leave(OK);
}

static char *map_file(int fd, u64 *size) {
	struct stat s;
	if (fstat(fd, &s) || s.st_size < PAGE || s.st_size % PAGE) return 0;
	char *m = mmap(0, s.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED) return 0;
	if (*(u64 *)(m + s.st_size - PAGE) != MAGIC) { munmap(m, s.st_size); return 0; }
	*size = s.st_size;
	return m;
}
result cuMemImportFromShareableHandle(u64 *h, void *os, int kind) {
	CALL;
	WANT(kind == 1, VALUE);
	u64 size = 0;
	char *m = map_file((int)(intptr_t)os, &size);
	WANT(m, VALUE);
	object *o = add(MEMORY);
	o->data = o->file = m; o->file_size = size; o->size = *(u64 *)(m + size - PAGE + 16);
	*h = (u64)o;
	return leave(OK);
}
result cuMemRelease(u64 h) { CALL; object *o = get(MEMORY, h); WANT(o, VALUE); if (!o->mapped) munmap(o->file, o->file_size); o->kind = NONE; return leave(OK); }
static u64 unreadable(u64 size) { return (u64)mmap(0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); }
result cuMemAddressReserve(u64 *p, size_t size, size_t alignment, u64 hint, u64 flags) {
	CALL;
	WANT(size && size % PAGE == 0 && !alignment && !hint && !flags, VALUE);
	object *o = add(RESERVED);
	*p = o->at = unreadable(size); o->size = size;
	return leave(OK);
}
result cuMemMap(u64 p, size_t size, size_t offset, u64 h, u64 flags) {
	CALL;
	object *o = at(p), *m = get(MEMORY, h);
	WANT(o && m && o->at == p && !o->data && size == m->size && size == o->size && !offset && !flags, VALUE);
	o->data = m->data; o->file = m->file; o->file_size = m->file_size; m->mapped = 1;
	return leave(OK);
}
result cuMemSetAccess(u64 p, size_t size, const int *desc, size_t n) {
	CALL;
	object *o = at(p);
	WANT(o && o->at == p && o->data && size == o->size && n == 1 && desc[0] == 1 && desc[1] < devices && (desc[2] == 1 || desc[2] == 3), VALUE);
	WANT(!no_read_only || desc[2] == 3, UNSUPPORTED);
	o->access = desc[2];
	return leave(OK);
}
result cuMemUnmap(u64 p, size_t size) { CALL; object *o = at(p); WANT(o && o->at == p && o->data && size == o->size, VALUE); munmap(o->file, o->file_size); o->data = 0; return leave(OK); }
result cuMemAddressFree(u64 p, size_t size) { CALL; object *o = at(p); WANT(o && o->at == p && !o->data && size == o->size, VALUE); munmap((void *)p, size); o->kind = NONE; return leave(OK); }
result cuMemAlloc_v2(u64 *p, size_t n) {
	CTX;
	WANT(n, VALUE);
	object *o = add(ALLOCATED);
	*p = o->at = unreadable(n); o->size = n; o->data = calloc(1, n); o->access = 3;
	return leave(OK);
}
result cuMemFree_v2(u64 p) { CTX; object *o = at(p); WANT(o && o->kind == ALLOCATED && o->at == p, VALUE); munmap((void *)p, o->size); free(o->data); o->kind = NONE; return leave(OK); }
result cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t n, u64 stream) { CTX; submit((op){.stream = stream, .kind = COPY, .to = to, .from = from, .size = n}); return leave(OK); }

// Events. One of another process is the file that its handle names: records
// have numbers, and a mark for each says that it is reached.

typedef struct { u64 magic, machine, nonce, size; u32 pid, fd; char event, rest[23]; } handle;
static u64 last(object *o) { return __atomic_load_n((u64 *)(o->file + o->file_size - PAGE + 48), __ATOMIC_SEQ_CST); }
result cuIpcOpenEventHandle(void **e, handle h) {
	CTX;
	WANT(h.magic == MAGIC && h.event == 1, VALUE);
	char path[64];
	snprintf(path, sizeof path, "/proc/%u/fd/%u", h.pid, h.fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	WANT(fd >= 0, VALUE);
	u64 size = 0;
	char *m = map_file(fd, &size);
	close(fd);
	WANT(m, VALUE);
	object *o = add(SHARED_EVENT);
	o->file = m; o->file_size = size;
	*e = o;
	return leave(OK);
}
// Memory of another allocator is the file that its handle names. The lock of a
// byte tells the owner that it is open here. A driver may refuse a second open.
result cuIpcOpenMemHandle_v2(u64 *p, handle h, u32 flags) {
	CTX;
	WANT(h.magic == MAGIC && !h.event && flags == 1, VALUE);
	for (int i = 0; i < 1024; i++) WANT(objects[i].kind != OPENED || objects[i].nonce != h.nonce, MAPPED);
	char path[64];
	snprintf(path, sizeof path, "/proc/%u/fd/%u", h.pid, h.fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	WANT(fd >= 0, VALUE);
	u64 size = 0;
	char *m = map_file(fd, &size);
	if (!m) close(fd);
	WANT(m, VALUE);
	char *head = m + size - PAGE;
	struct flock mine = {.l_type = F_WRLCK, .l_start = __atomic_add_fetch((u32 *)(head + 40), 1, __ATOMIC_SEQ_CST), .l_len = 1};
	fcntl(fd, F_OFD_SETLK, &mine);
	object *o = add(OPENED);
	o->data = o->file = m; o->file_size = size; o->size = *(u64 *)(head + 16); o->nonce = h.nonce; o->fd = fd; o->access = 3;
	*p = o->at = unreadable(o->size);
	return leave(OK);
}
result cuIpcCloseMemHandle(u64 p) { CTX; object *o = at(p); WANT(o && o->kind == OPENED && o->at == p, VALUE); munmap((void *)p, o->size); munmap(o->file, o->file_size); close(o->fd); o->kind = NONE; return leave(OK); }
result cuMemGetAddressRange_v2(u64 *base, size_t *size, u64 p) { CTX; object *o = at(p); WANT(o, VALUE); *base = o->at; *size = o->size; return leave(OK); }
result cuEventCreate(void **e, u32 flags) { CTX; WANT(flags == 2, VALUE); *e = add(EVENT); return leave(OK); }
result cuEventDestroy_v2(void *e) {
	CTX;
	object *o = get(EVENT, (u64)e) ? e : get(SHARED_EVENT, (u64)e);
	WANT(o, HANDLE);
	if (o->file) munmap(o->file, o->file_size);
	o->kind = NONE;
	return leave(OK);
}
result cuEventQuery(void *e) {
	CTX;
	if (automatic) advance();
	object *o = get(SHARED_EVENT, (u64)e);
	if (o) {
		op wait = {.kind = WAIT, .event = o, .sequence = last(o)};
		return leave(!wait.sequence || ready(&wait) ? OK : NOT_READY);
	}
	WANT(o = get(EVENT, (u64)e), HANDLE);
	return leave(complete_to(o->order) ? OK : NOT_READY);
}
result cuStreamWaitEvent(u64 stream, void *e, u32 flags) {
	CTX;
	object *o = get(SHARED_EVENT, (u64)e);
	WANT(o && !flags, HANDLE);
	submit((op){.stream = stream, .kind = WAIT, .event = o, .sequence = last(o)});
	return leave(OK);
}
#ifndef OLD
result cuCtxRecordEvent(void *c, void *e) { CTX; object *o = get(EVENT, (u64)e); WANT(o && (u64)c >> 4 == 0x10, HANDLE); o->order = numbers; return leave(OK); }
#endif

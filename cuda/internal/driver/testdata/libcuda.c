// A CUDA driver without a device, for tests of package driver: every function
// that it calls, on host memory, with streams that do their work at once. It
// checks what the marshalling of arguments can break: initialisation, the
// current context, handles, sizes of allocations. shim_* are its controls.
//
// OLD_LOOKUP has the cuGetProcAddress of 11.3, NO_LOOKUP has none, as before 11.3.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef uint32_t result; // CUresult
typedef uint64_t ptr;    // CUdeviceptr
typedef int32_t device;
typedef uint64_t u64;
typedef uint32_t u32;

enum { OK = 0, VALUE = 1, OOM = 2, UNINIT = 3, BAD_DEVICE = 101, BAD_IMAGE = 200, BAD_CONTEXT = 201, BAD_PTX = 218, BAD_HANDLE = 400, STATE = 401, MISSING = 500, ENABLED = 704 };

// tenure_test_driver tells this library from a driver.
int tenure_test_driver = 1;

// Controls and observations.

static u64 last[16]; // the arguments of the last call that recorded them
static char hidden[1024];
static int version = 12090, initialised, stub;
static result init_result;

void shim_hide(const char *names) { snprintf(hidden, sizeof hidden, ",%s,", names); }
void shim_version(int v) { version = v; }
void shim_stub(int on) { stub = on; }
void shim_init(result r) { init_result = r; }
u64 *shim_last(void) { return last; }

static void record(int n, ...) {
	va_list l;
	va_start(l, n);
	memset(last, 0, sizeof last);
	for (int i = 0; i < n; i++) last[i] = va_arg(l, u64);
	va_end(l);
}
#define U(x) ((u64)(x))

// Objects: everything that is created and destroyed is in one table.

enum { DEVICE = 1, MANAGED, HOST, RESERVATION, MAPPING, MEMORY, STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXEC, KINDS };

typedef struct { int kind; u64 at, size; struct ctx *ctx; void *extra; } object;
static object objects[4096];
static int pooled; // whose address marks memory of the pool
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static object *add(int kind, u64 at, u64 size, struct ctx *c) {
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 4096; i++)
		if (!objects[i].kind) {
			objects[i] = (object){kind, at ? at : (u64)&objects[i], size, c, 0};
			pthread_mutex_unlock(&lock);
			return &objects[i];
		}
	abort();
}

static object *find(int kind, u64 at) {
	object *found = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 4096 && !found; i++)
		if (objects[i].kind == kind && objects[i].at == at) found = &objects[i];
	pthread_mutex_unlock(&lock);
	return found;
}

static object *containing(int kind, u64 at) {
	object *found = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 4096 && !found; i++)
		if (objects[i].kind == kind && objects[i].at <= at && at < objects[i].at + objects[i].size) found = &objects[i];
	pthread_mutex_unlock(&lock);
	return found;
}

static void drop(object *o) { pthread_mutex_lock(&lock); o->kind = 0; pthread_mutex_unlock(&lock); }

// shim_live counts the objects that were not destroyed.
int shim_live(void) {
	int n = 0;
	for (int i = 0; i < 4096; i++) n += objects[i].kind != 0 && objects[i].kind != FUNCTION;
	return n;
}

// Contexts: two devices, whose primary contexts are counted. A thread has a
// stack of contexts.

typedef struct ctx { device dev; int retained; } ctx;
static ctx primary[2] = {{0, 0}, {1, 0}};
static __thread ctx *stack[8];
static __thread int depth;

void *shim_current(void) { return depth ? stack[depth - 1] : 0; }
int shim_depth(void) { return depth; }
void shim_force(void *c) { depth = c != 0; stack[0] = c; }

#define INIT if (!initialised) return UNINIT
#define CTX INIT; ctx *current = depth ? stack[depth - 1] : 0; (void)current; if (!current || !current->retained) return BAD_CONTEXT
#define GET(o, kind, h) object *o = find(kind, (u64)(h)); if (!o) return BAD_HANDLE
#define DEV INIT; if (dev < 0 || dev > 1) return BAD_DEVICE

static result cuInit(u32 flags) { if (flags) return VALUE; if (init_result) return init_result; initialised = 1; return OK; }
static result cuGetErrorName(result r, const char **s) {
	*s = r == OOM ? "CUDA_ERROR_OUT_OF_MEMORY" : r == VALUE ? "CUDA_ERROR_INVALID_VALUE" : 0;
	return *s ? OK : VALUE;
}
static result cuGetErrorString(result r, const char **s) { *s = r == OOM ? "out of memory, says the shim" : 0; return *s ? OK : VALUE; }
#if defined NO_LOOKUP
#define EXPORTED
#else
#define EXPORTED static
#endif
EXPORTED result cuDriverGetVersion(int *v) { *v = version; return OK; }
static result cuDeviceGetCount(int *n) { INIT; *n = 2; return OK; }
static result cuDeviceGet(device *d, int i) { INIT; if (i < 0 || i > 1) return BAD_DEVICE; *d = i; return OK; }
static result cuDeviceGetName(char *s, int n, device dev) { DEV; snprintf(s, n, "Shim %d", dev); return OK; }
static result cuDeviceGetUuid(char *s, device dev) { DEV; for (int i = 0; i < 16; i++) s[i] = 16 * dev + i; return OK; }
static result cuDeviceTotalMem(size_t *n, device dev) { DEV; *n = 5ull << 30; return OK; }
static result cuDeviceGetAttribute(int *v, int a, device dev) {
	DEV;
	record(2, U(a), U(dev));
	switch (a) {
	case 1: *v = 1024; return OK;
	case 8: *v = 49152; return OK;
	case 16: *v = 1; return OK;
	case 75: *v = 8; return OK;
	case 41: case 83: case 102: case 103: case 115: case 125: *v = 1; return OK;
	}
	*v = 0;
	return a < 1 || a > 200 ? VALUE : OK;
}
static result cuDeviceCanAccessPeer(int *can, device dev, device peer) { DEV; record(2, U(dev), U(peer)); *can = dev != peer; return OK; }
static result cuDevicePrimaryCtxRetain(ctx **c, device dev) { DEV; primary[dev].retained++; *c = &primary[dev]; return OK; }
static result cuDevicePrimaryCtxRelease(device dev) { DEV; if (!primary[dev].retained) return BAD_CONTEXT; primary[dev].retained--; return OK; }
static result cuCtxGetCurrent(ctx **c) { INIT; *c = depth ? stack[depth - 1] : 0; return OK; }
static result cuCtxSetCurrent(ctx *c) { INIT; if (!depth) depth = 1; stack[depth - 1] = c; if (!c) depth--; return OK; }
static result cuCtxPushCurrent(ctx *c) { INIT; if (!c || depth == 8) return BAD_CONTEXT; stack[depth++] = c; return OK; }
static result cuCtxPopCurrent(ctx **c) { INIT; if (!depth) return BAD_CONTEXT; *c = stack[--depth]; return OK; }
static result cuCtxSynchronize(void) { CTX; return OK; }
static result cuCtxEnablePeerAccess(ctx *peer, u32 flags) {
	CTX;
	static int enabled[2];
	if (peer == current || !peer || flags) return BAD_CONTEXT;
	return enabled[current->dev]++ ? ENABLED : OK;
}
static result cuMemGetInfo(size_t *f, size_t *t) { CTX; *f = 4ull << 30; *t = 5ull << 30; return OK; }

// Streams and graphs: an operation runs when it is submitted, or becomes a
// node of the graph that its stream captures.

typedef struct { int kind; u64 a, b, c, d; } op;
typedef struct { op ops[64]; int n; } ops;
enum { COPY, SET8, SET32, FILL };

static void run(op o) {
	switch (o.kind) {
	case COPY: memmove((void *)o.a, (void *)o.b, o.c); break;
	case SET8: memset((void *)o.a, (int)o.b, o.c); break;
	case SET32: case FILL: for (u64 i = 0; i < o.c; i++) ((u32 *)o.a)[i] = (u32)o.b; break;
	}
}
static result submit(u64 stream, op o) {
	if (stream > 2) {
		GET(s, STREAM, stream);
		ops *graph = s->extra;
		if (graph) {
			graph->ops[graph->n++] = o;
			return OK;
		}
	}
	run(o);
	return OK;
}
static int known(u64 stream) { return stream <= 2 || find(STREAM, stream); }
#define KNOWN(s) if (!known(s)) return BAD_HANDLE

static result cuStreamCreateWithPriority(u64 *s, u32 flags, int priority) { CTX; if (flags > 1) return VALUE; record(2, U(flags), (u64)(int64_t)priority); *s = add(STREAM, 0, 0, current)->at; return OK; }
static result cuStreamDestroy(u64 s) { CTX; GET(o, STREAM, s); free(o->extra); drop(o); return OK; }
static result cuStreamSynchronize(u64 s) { CTX; KNOWN(s); record(1, s); return OK; }
static result cuStreamQuery(u64 s) { CTX; KNOWN(s); record(1, s); return s == 2 ? 600 : OK; } // the per-thread stream is never ready
static result cuStreamWaitEvent(u64 s, u64 e, u32 flags) { CTX; KNOWN(s); GET(o, EVENT, e); (void)o; record(3, s, e, U(flags)); return flags ? VALUE : OK; }

typedef struct { void (*fn)(void *); void *arg; } host;
static void *host_thread(void *p) { host *h = p; h->fn(h->arg); return 0; }
static result cuLaunchHostFunc(u64 s, void (*fn)(void *), void *arg) {
	CTX; KNOWN(s);
	host h = {fn, arg};
	pthread_t t;
	pthread_create(&t, 0, host_thread, &h); // as the driver, which has threads of its own for these
	pthread_join(t, 0);
	return OK;
}
static result cuStreamBeginCapture(u64 s, int mode) { CTX; GET(o, STREAM, s); if (o->extra || mode != 2) return STATE; o->extra = calloc(1, sizeof(ops)); return OK; }
static result cuStreamEndCapture(u64 s, u64 *g) { CTX; GET(o, STREAM, s); if (!o->extra) return STATE; object *n = add(GRAPH, 0, 0, current); n->extra = o->extra; o->extra = 0; *g = n->at; return OK; }
static result cuGraphInstantiateWithFlags(u64 *e, u64 g, u64 flags) {
	CTX; GET(o, GRAPH, g);
	if (flags) return VALUE;
	object *n = add(EXEC, 0, 0, current);
	n->extra = malloc(sizeof(ops));
	memcpy(n->extra, o->extra, sizeof(ops));
	*e = n->at;
	return OK;
}
static result cuGraphLaunch(u64 e, u64 s) { CTX; GET(o, EXEC, e); KNOWN(s); ops *l = o->extra; for (int i = 0; i < l->n; i++) run(l->ops[i]); return OK; }
static result cuGraphExecDestroy(u64 e) { CTX; GET(o, EXEC, e); free(o->extra); drop(o); return OK; }
static result cuGraphDestroy(u64 g) { CTX; GET(o, GRAPH, g); free(o->extra); drop(o); return OK; }

// Events: size is the flags, extra whether it was recorded.
static result cuEventCreate(u64 *e, u32 flags) { CTX; if (flags > 7 || (flags & 6) == 4) return VALUE; *e = add(EVENT, 0, flags, current)->at; return OK; }
static result cuEventDestroy(u64 e) { CTX; GET(o, EVENT, e); drop(o); return OK; }
static result cuEventRecord(u64 e, u64 s) { CTX; GET(o, EVENT, e); KNOWN(s); record(2, e, s); o->extra = o; return OK; }
static result cuEventQuery(u64 e) { CTX; GET(o, EVENT, e); (void)o; return OK; }
static result cuEventSynchronize(u64 e) { return cuEventQuery(e); }
static result cuEventElapsedTime(float *ms, u64 from, u64 to) {
	CTX; GET(a, EVENT, from); GET(b, EVENT, to);
	if (!a->extra || !b->extra || (a->size | b->size) & 2) return BAD_HANDLE;
	*ms = 0.25f;
	return OK;
}
static result cuCtxRecordEvent(ctx *c, u64 e) { INIT; if (c != shim_current()) return BAD_CONTEXT; return cuEventRecord(e, 0); }

// Memory.

static result allocate(int kind, u64 *p, size_t size) {
	CTX;
	if (!size) return VALUE;
	if (size > 1ull << 32) return OOM;
	*p = (u64)aligned_alloc(256, (size + 255) & ~255ull);
	add(kind, *p, size, current);
	return OK;
}
static result release(int kind, u64 p) { CTX; object *o = find(kind, p); if (!o) return VALUE; free((void *)p); drop(o); return OK; }
static result cuMemAlloc(ptr *p, size_t n) { record(1, U(n)); return allocate(DEVICE, p, n); }
static result cuMemFree(ptr p) { return find(MANAGED, p) ? release(MANAGED, p) : release(DEVICE, p); }
static result cuMemAllocManaged(ptr *p, size_t n, u32 flags) { return flags == 1 ? allocate(MANAGED, p, n) : VALUE; }
static result cuMemAllocAsync(ptr *p, size_t n, u64 s) {
	INIT; KNOWN(s);
	record(2, U(n), s);
	result r = allocate(DEVICE, p, n);
	if (!r) find(DEVICE, *p)->extra = &pooled;
	return r;
}
static result cuMemFreeAsync(ptr p, u64 s) { INIT; KNOWN(s); record(2, p, s); return release(DEVICE, p); }
static result cuDeviceGetDefaultMemPool(u64 *p, device dev) { DEV; *p = 0x1000 + dev; return OK; }
static result cuMemPoolTrimTo(u64 p, size_t keep) { INIT; record(2, p, U(keep)); return p >> 1 == 0x800 ? OK : VALUE; }
static result cuMemHostAlloc(void **p, size_t n, u32 flags) { return flags == 1 ? allocate(HOST, (u64 *)p, n) : VALUE; }
static result cuMemFreeHost(void *p) { return release(HOST, (u64)p); }
static result cuPointerGetAttributes(u32 n, int *attributes, void **data, ptr p) {
	INIT;
	object *o = containing(DEVICE, p);
	int type = 2, managed = 0;
	if (!o) o = containing(MAPPING, p);
	if (!o && (o = containing(MANAGED, p))) managed = 1;
	if (!o && (o = containing(HOST, p))) type = 1;
	for (u32 i = 0; i < n; i++)
		switch (attributes[i]) {
		case 1: *(void **)data[i] = o ? o->ctx : 0; break;
		case 2: *(u32 *)data[i] = o ? type : 0; break;
		case 8: *(u32 *)data[i] = managed; break;
		case 9: *(int *)data[i] = o ? (o->ctx ? o->ctx->dev : 0) : -2; break;
		case 10: *(char *)data[i] = o && o == containing(DEVICE, p) && o->extra != &pooled; break;
		default: return VALUE;
		}
	return OK;
}
static result cuMemGetAddressRange(ptr *base, size_t *size, ptr p) { CTX; object *o = containing(DEVICE, p); if (!o) return MISSING; *base = o->at; *size = o->size; return OK; }

// Virtual memory: an allocation is a memfd, a mapping is one of mmap.

enum { GRANULE = 1 << 16 };
typedef struct { u32 type, handles; int location, id; u64 win32; unsigned char compression, rdma; uint16_t usage; char reserved[4]; } prop;
typedef struct { int location, id; u32 flags; } right;
static int good(const prop *p) { return p->type == 1 && p->handles <= 1 && p->location == 1 && p->id >= 0 && p->id < 2 && !p->win32 && !p->compression && !p->rdma && !p->usage; }
static result cuMemGetAllocationGranularity(size_t *g, const prop *p, int option) { INIT; if (!good(p) || option < 0 || option > 1) return VALUE; *g = GRANULE << option; return OK; }
static result cuMemAddressReserve(ptr *p, size_t size, size_t alignment, ptr hint, u64 flags) {
	INIT;
	record(4, U(size), U(alignment), hint, flags);
	if (!size || size % GRANULE || flags) return VALUE;
	char *m = mmap(0, size + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED) return OOM;
	char *start = (char *)(((u64)m + GRANULE - 1) / GRANULE * GRANULE);
	if (start > m) munmap(m, start - m);
	if (m + GRANULE > start) munmap(start + size, m + GRANULE - start);
	*p = add(RESERVATION, (u64)start, size, 0)->at;
	return OK;
}
static result cuMemAddressFree(ptr p, size_t size) { INIT; object *o = find(RESERVATION, p); if (!o || o->size != size || containing(MAPPING, p)) return VALUE; munmap((void *)p, size); drop(o); return OK; }
static result memory(u64 *h, int fd, u64 size, int exportable) {
	object *o = add(MEMORY, 0, size, 0);
	int *extra = malloc(3 * sizeof(int));
	extra[0] = fd; extra[1] = exportable; extra[2] = 1; // references
	o->extra = extra;
	*h = o->at;
	return OK;
}
static result cuMemCreate(u64 *h, size_t size, const prop *p, u64 flags) {
	INIT;
	if (!good(p) || !size || size % GRANULE || flags) return VALUE;
	if (size > 1ull << 32) return OOM;
	int fd = memfd_create("shim", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, size)) return OOM;
	return memory(h, fd, size, p->handles);
}
static result cuMemRelease(u64 h) {
	INIT;
	object *o = find(MEMORY, h);
	if (!o) return VALUE;
	int *extra = o->extra;
	if (--extra[2]) return OK;
	close(extra[0]);
	free(extra);
	drop(o);
	return OK;
}
static result cuMemMap(ptr p, size_t size, size_t offset, u64 h, u64 flags) {
	INIT;
	object *o = find(MEMORY, h), *r = containing(RESERVATION, p);
	if (!o || !r || p % GRANULE || !size || size % GRANULE || offset || size > o->size || p + size > r->at + r->size || containing(MAPPING, p) || flags) return VALUE;
	if (mmap((void *)p, size, PROT_NONE, MAP_SHARED | MAP_FIXED, ((int *)o->extra)[0], 0) == MAP_FAILED) return OOM;
	add(MAPPING, p, size, 0)->extra = o;
	((int *)o->extra)[2]++; // a mapping keeps the memory
	return OK;
}
static result cuMemUnmap(ptr p, size_t size) {
	INIT;
	object *o = find(MAPPING, p);
	if (!o || o->size != size) return VALUE;
	mmap((void *)p, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	u64 h = ((object *)o->extra)->at;
	drop(o);
	return cuMemRelease(h);
}
static result cuMemSetAccess(ptr p, size_t size, const right *a, size_t n) {
	INIT;
	if (n != 1 || a->location != 1 || a->id < 0 || a->id > 1 || !find(MAPPING, p)) return VALUE;
	record(3, p, U(size), U(a->flags));
	return mprotect((void *)p, size, a->flags == 3 ? PROT_READ | PROT_WRITE : a->flags == 1 ? PROT_READ : PROT_NONE) ? VALUE : OK;
}
static result cuMemExportToShareableHandle(int *fd, u64 h, int type, u64 flags) { INIT; object *o = find(MEMORY, h); if (!o || type != 1 || flags || !((int *)o->extra)[1]) return VALUE; *fd = dup(((int *)o->extra)[0]); return OK; }
static result cuMemImportFromShareableHandle(u64 *h, void *fd, int type) { INIT; struct stat s; int f = dup((int)(intptr_t)fd); if (type != 1 || f < 0 || fstat(f, &s)) return VALUE; return memory(h, f, s.st_size, 1); }
static result cuMemRetainAllocationHandle(u64 *h, void *p) { INIT; object *m = containing(MAPPING, (u64)p); if (!m) return VALUE; object *o = m->extra; ((int *)o->extra)[2]++; *h = o->at; return OK; }

// Copies.

typedef struct { size_t sx, sy; int stype; const void *shost; ptr sdev; void *sarray; size_t spitch, dx, dy; int dtype; void *dhost; ptr ddev; void *darray; size_t dpitch, width, height; } copy2d;
static result cuMemcpyHtoDAsync(ptr d, const void *s, size_t n, u64 stream) { CTX; record(4, d, U(s), U(n), stream); return submit(stream, (op){COPY, d, (u64)s, n, 0}); }
static result cuMemcpyDtoHAsync(void *d, ptr s, size_t n, u64 stream) { CTX; record(4, U(d), s, U(n), stream); return submit(stream, (op){COPY, (u64)d, s, n, 0}); }
static result cuMemcpyDtoDAsync(ptr d, ptr s, size_t n, u64 stream) { CTX; record(4, d, s, U(n), stream); return submit(stream, (op){COPY, d, s, n, 0}); }
static result cuMemcpyPeerAsync(ptr d, ctx *dc, ptr s, ctx *sc, size_t n, u64 stream) { CTX; record(6, d, U(dc), s, U(sc), U(n), stream); if (!dc || !sc) return BAD_CONTEXT; return submit(stream, (op){COPY, d, s, n, 0}); }
static result cuMemcpy2DAsync(const copy2d *c, u64 stream) {
	CTX; KNOWN(stream);
	if (c->sx || c->sy || c->dx || c->dy || c->sarray || c->darray || c->width > c->spitch || c->width > c->dpitch) return VALUE;
	if (c->stype < 1 || c->stype > 2 || c->dtype < 1 || c->dtype > 2) return VALUE;
	u64 s = c->stype == 1 ? (u64)c->shost : c->sdev, d = c->dtype == 1 ? (u64)c->dhost : c->ddev;
	for (size_t i = 0; i < c->height; i++) submit(stream, (op){COPY, d + i * c->dpitch, s + i * c->spitch, c->width, 0});
	return OK;
}
static result cuMemsetD8Async(ptr p, unsigned char v, size_t n, u64 s) { CTX; record(4, p, U(v), U(n), s); return submit(s, (op){SET8, p, v, n, 0}); }
static result cuMemsetD32Async(ptr p, u32 v, size_t n, u64 s) { CTX; record(4, p, U(v), U(n), s); if (p % 4) return VALUE; return submit(s, (op){SET32, p, v, n, 0}); }

// Modules: PTX is text with an entry; the only kernel is fill(pointer, value, n).

static result cuModuleLoadDataEx(u64 *m, const char *image, u32 n, int *options, void **values) {
	CTX;
	char *log = 0;
	size_t room = 0, *size = 0;
	for (u32 i = 0; i < n; i++) {
		if (options[i] == 5) log = values[i];
		if (options[i] == 6) size = (size_t *)&values[i], room = (u32)*size;
	}
	if (!strstr(image, ".version")) return BAD_IMAGE;
	if (!strstr(image, ".entry")) {
		if (log && room) *size = snprintf(log, room, "ptxas application ptx input, line 4; fatal   : Parsing error near 'this': syntax error");
		return BAD_PTX;
	}
	object *o = add(MODULE, 0, 0, current);
	o->extra = strdup(image);
	*m = o->at;
	return OK;
}
static result cuModuleUnload(u64 m) { CTX; GET(o, MODULE, m); free(o->extra); drop(o); return OK; }
static result cuModuleGetFunction(u64 *f, u64 m, const char *name) {
	CTX; GET(o, MODULE, m);
	char entry[256];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	if (!strstr(o->extra, entry)) return MISSING;
	*f = add(FUNCTION, 0, 0, current)->at;
	return OK;
}
static result cuFuncGetAttribute(int *v, int a, u64 f) { CTX; GET(o, FUNCTION, f); (void)o; *v = a == 0 ? 1024 : a == 4 ? 8 : 0; return OK; }
static result cuLaunchKernel(u64 f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, u64 s, void **params, void **extra) {
	CTX; GET(o, FUNCTION, f); (void)o;
	record(11, f, U(gx), U(gy), U(gz), U(bx), U(by), U(bz), U(shared), s, U(params), U(extra));
	KNOWN(s);
	if (!gx || !gy || !gz || !bx || !by || !bz || (u64)bx * by * bz > 1024 || extra || !params) return VALUE;
	return submit(s, (op){FILL, *(u64 *)params[0], *(u32 *)params[1], *(u32 *)params[2], 0});
}

// Sharing by handle: a handle has the address. Memory that was exported here
// is refused, as the driver does.

typedef struct { u64 words[8]; } handle;
static result cuIpcGetMemHandle(handle *h, ptr p) { CTX; GET(o, DEVICE, p); (void)o; for (int i = 0; i < 8; i++) h->words[i] = p + i; return OK; }
static result cuIpcOpenMemHandle(ptr *p, handle h, u32 flags) {
	CTX;
	record(9, h.words[0], h.words[1], h.words[2], h.words[3], h.words[4], h.words[5], h.words[6], h.words[7], U(flags));
	if (find(DEVICE, h.words[0])) return BAD_CONTEXT;
	*p = h.words[0];
	return OK;
}
static result cuIpcCloseMemHandle(ptr p) { CTX; record(1, p); return find(DEVICE, p) ? VALUE : OK; }
static result cuIpcGetEventHandle(handle *h, u64 e) { CTX; GET(o, EVENT, e); if (!(o->size & 4)) return BAD_HANDLE; for (int i = 0; i < 8; i++) h->words[i] = e + i; return OK; }
static result cuIpcOpenEventHandle(u64 *e, handle h) {
	CTX;
	record(8, h.words[0], h.words[1], h.words[2], h.words[3], h.words[4], h.words[5], h.words[6], h.words[7]);
	if (find(EVENT, h.words[0])) return BAD_CONTEXT;
	*e = h.words[0];
	return OK;
}

// The lookup: the version is the one in which the function got its parameters.

#define F(name, version) {#name, version, (void *)name}
static const struct { const char *name; int version; void *at; } table[] = {
	F(cuInit, 2000), F(cuGetErrorName, 6000), F(cuGetErrorString, 6000), F(cuDriverGetVersion, 2020), F(cuDeviceGetCount, 2000), F(cuDeviceGet, 2000), F(cuDeviceGetName, 2000),
	F(cuDeviceGetUuid, 11040), F(cuDeviceTotalMem, 3020), F(cuDeviceGetAttribute, 2000), F(cuDeviceCanAccessPeer, 4000), F(cuDevicePrimaryCtxRetain, 7000),
	F(cuDevicePrimaryCtxRelease, 11000), F(cuCtxGetCurrent, 4000), F(cuCtxSetCurrent, 4000), F(cuCtxPushCurrent, 4000), F(cuCtxPopCurrent, 4000), F(cuCtxSynchronize, 2000),
	F(cuCtxEnablePeerAccess, 4000), F(cuCtxRecordEvent, 12050), F(cuMemGetInfo, 3020), F(cuStreamCreateWithPriority, 5050), F(cuStreamDestroy, 4000), F(cuStreamSynchronize, 2000),
	F(cuStreamQuery, 2000), F(cuStreamWaitEvent, 3020), F(cuLaunchHostFunc, 10000), F(cuEventCreate, 2000), F(cuEventDestroy, 4000), F(cuEventRecord, 2000), F(cuEventQuery, 2000),
	F(cuEventSynchronize, 2000), F(cuEventElapsedTime, 2000), F(cuMemGetAllocationGranularity, 10020), F(cuMemAddressReserve, 10020), F(cuMemAddressFree, 10020), F(cuMemCreate, 10020),
	F(cuMemRelease, 10020), F(cuMemMap, 10020), F(cuMemUnmap, 10020), F(cuMemSetAccess, 10020), F(cuMemExportToShareableHandle, 10020), F(cuMemImportFromShareableHandle, 10020),
	F(cuMemRetainAllocationHandle, 11000), F(cuMemAlloc, 3020), F(cuMemFree, 3020), F(cuMemAllocManaged, 6000), F(cuMemAllocAsync, 11020), F(cuMemFreeAsync, 11020),
	F(cuDeviceGetDefaultMemPool, 11020), F(cuMemPoolTrimTo, 11020), F(cuMemHostAlloc, 2020), F(cuMemFreeHost, 2000), F(cuPointerGetAttributes, 7000), F(cuMemGetAddressRange, 3020),
	F(cuMemcpyHtoDAsync, 3020), F(cuMemcpyDtoHAsync, 3020), F(cuMemcpyDtoDAsync, 3020), F(cuMemcpyPeerAsync, 4000), F(cuMemcpy2DAsync, 3020), F(cuMemsetD8Async, 3020),
	F(cuMemsetD32Async, 3020), F(cuModuleLoadDataEx, 2010), F(cuModuleUnload, 2000), F(cuModuleGetFunction, 2000), F(cuFuncGetAttribute, 2020), F(cuLaunchKernel, 4000),
	F(cuStreamBeginCapture, 10010), F(cuStreamEndCapture, 10000), F(cuGraphInstantiateWithFlags, 11040), F(cuGraphLaunch, 10000), F(cuGraphExecDestroy, 10000), F(cuGraphDestroy, 10000),
	F(cuIpcGetMemHandle, 4010), F(cuIpcOpenMemHandle, 11000), F(cuIpcCloseMemHandle, 4010), F(cuIpcGetEventHandle, 4010), F(cuIpcOpenEventHandle, 4010),
};

// look is exact about versions, which a driver is not, so that a wrong one shows.
__attribute__((unused)) static result look(const char *name, void **at, int v, u64 flags) {
	if (stub) return 34;
	*at = 0;
	char quoted[128];
	snprintf(quoted, sizeof quoted, ",%s,", name);
	if (flags || strstr(hidden, quoted)) return OK;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name) && table[i].version == v && v <= version) *at = table[i].at;
	return OK;
}

#if defined OLD_LOOKUP
result cuGetProcAddress(const char *name, void **at, int v, u64 flags) { result r = look(name, at, v, flags); return r ? r : *at ? OK : MISSING; }
#elif !defined NO_LOOKUP
result cuGetProcAddress(const char *name, void **at, int v, u64 flags) { (void)name, (void)at, (void)v, (void)flags; return VALUE; } // version 2 comes first
result cuGetProcAddress_v2(const char *name, void **at, int v, u64 flags, u32 *status) { *status = 0; return look(name, at, v, flags); }
#endif

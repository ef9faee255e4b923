// A consumer and a producer in C, for the tests of package capi: compiled when there is a C compiler.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { uint32_t major, minor; } version;
typedef struct {
	void *data;
	int32_t device, device_id, ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} tensor;
typedef struct managed {
	version v;
	void *ctx;
	void (*deleter)(struct managed *);
	uint64_t flags;
	tensor t;
} managed;

typedef struct { managed **all; long n; int bad; } share;

// Each thread looks at the first byte of every tensor it has and gives it back.
static void *consume(void *arg) {
	share *s = arg;
	for (long i = 0; i < s->n; i++) {
		managed *m = s->all[i];
		s->bad += *(unsigned char *)m->t.data != 42;
		m->deleter(m);
	}
	return 0;
}

// delete_all gives n structs back from as many threads, and returns how many had wrong bytes.
int delete_all(managed **all, long n, int threads) {
	pthread_t *id = malloc(threads * sizeof *id);
	share *s = malloc(threads * sizeof *s);
	int bad = 0;
	for (int i = 0; i < threads; i++) {
		long from = n * i / threads, to = n * (i + 1) / threads;
		s[i] = (share){all + from, to - from, 0};
		pthread_create(&id[i], 0, consume, &s[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(id[i], 0);
		bad += s[i].bad;
	}
	free(id);
	free(s);
	return bad;
}

static long living;

static void freed(managed *m) {
	__atomic_fetch_sub(&living, 1, __ATOMIC_SEQ_CST);
	free(m->t.data);
	free(m->t.shape);
	free(m);
}

// make produces an f32[2,3] with the elements 0 to 5.
managed *make(void) {
	managed *m = calloc(1, sizeof *m);
	float *data = malloc(6 * sizeof *data);
	int64_t *dims = malloc(4 * sizeof *dims);
	for (int i = 0; i < 6; i++) data[i] = i;
	dims[0] = 2, dims[1] = 3, dims[2] = 3, dims[3] = 1;
	m->v = (version){1, 3};
	m->deleter = freed;
	m->t = (tensor){data, 1, 0, 2, 2, 32, 1, dims, dims + 2, 0};
	__atomic_fetch_add(&living, 1, __ATOMIC_SEQ_CST);
	return m;
}

long made_and_not_freed(void) { return __atomic_load_n(&living, __ATOMIC_SEQ_CST); }

// The loops of the benchmark that run in C. Each takes one argument, so that
// whoever calls needs no more than a function of one pointer.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { void *data; int32_t device, id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t offset; } tensor;
typedef struct managed { uint32_t major, minor; void *ctx; void (*deleter)(struct managed *); uint64_t flags; tensor t; } managed;

typedef struct {
	managed **list;
	int64_t n, nanos;
	uint64_t unit, exports, busy, dead; // of a record's word
	uint32_t *head;                     // of the list of dead records
	int32_t (*to)(void *, managed **);  // of tvm-ffi
	int32_t (*from)(managed *, int32_t, int32_t, void **);
	void *object;
} job;

static job rules;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// The deleter of package dlpack, in C.
static void deleter(managed *m) {
	uint64_t *word = m->ctx;
	uint64_t before = __atomic_fetch_sub(word, rules.unit, __ATOMIC_ACQ_REL), after = before - rules.unit;
	if ((before & rules.exports) == 0) {
		__atomic_fetch_add(word, rules.unit, __ATOMIC_ACQ_REL);
		return;
	}
	if ((after & rules.busy) != 0 || (after & rules.dead) == 0) return;
	uint32_t index = ((uint32_t *)word)[2], head = __atomic_load_n(rules.head, __ATOMIC_ACQUIRE);
	do ((uint32_t *)word)[3] = head;
	while (!__atomic_compare_exchange_n(rules.head, &head, index, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static void drain(job *j, void (*f)(managed *)) {
	int64_t began = now();
	for (int64_t i = 0; i < j->n; i++) (f ? f : j->list[i]->deleter)(j->list[i]);
	j->nanos = now() - began;
}

void set_rules(job *j) { rules = *j; }
void delete_by_deleter(job *j) { drain(j, 0); }
void delete_in_c(job *j) { drain(j, deleter); }

// A cached export as C would do it, and our deleter.
void pair(job *j) {
	managed *m = j->list[0];
	uint64_t *word = m->ctx;
	int64_t began = now();
	for (int64_t i = 0; i < j->n; i++) {
		uint64_t w = __atomic_load_n(word, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(word, &w, w + rules.unit, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
		m->deleter(m);
	}
	j->nanos = now() - began;
}

static void release(managed *m) { free(m); }

// What an exchange without a cache does: a struct with room for its sizes, filled and freed.
void fresh(job *j) {
	managed *like = j->list[0];
	int64_t began = now();
	for (int64_t i = 0; i < j->n; i++) {
		int rank = like->t.ndim;
		managed *m = malloc(sizeof *m + 16 * rank);
		*m = *like;
		m->deleter = release;
		m->t.shape = (int64_t *)(m + 1);
		m->t.strides = m->t.shape + rank;
		memcpy(m->t.shape, like->t.shape, 8 * rank);
		memcpy(m->t.strides, like->t.strides, 8 * rank);
		__asm__ volatile("" : : "r"(m) : "memory");
		m->deleter(m);
	}
	j->nanos = now() - began;
}

// tvm-ffi: one of its tensors out and back, as many times.
void tvm_import(job *j) { j->nanos = j->from(j->list[0], 0, 0, &j->object); }
void tvm_export(job *j) {
	int64_t began = now();
	for (int64_t i = 0; i < j->n; i++) {
		managed *m;
		j->to(j->object, &m);
		m->deleter(m);
	}
	j->nanos = now() - began;
}

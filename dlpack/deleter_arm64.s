#include "textflag.h"
#include "go_asm.h"

// void deleter(struct *self): leaf functions of the C calling convention. They use no stack, none of Go's fixed registers
// (R27, R28) nor the platform's (R18), and only registers that a C function may overwrite: R0 to R8. The argument comes in R0.

#define DELETER(ctx, unit) \
	MOVD ctx(R0), R1                  /* the record: its word, then its number and a link */ \
	MOVD $unit, R2                    \
again: \
	LDAXR (R1), R3                    /* the word before */ \
	SUB R2, R3, R4                    /* the word after */ \
	STLXR R4, (R1), R5                \
	CBNZW R5, again                   \
	MOVD $const_maskExports, R6       \
	TST R6, R3                        \
	BEQ twice                         \
	MOVD $const_maskBusy, R6          \
	TST R6, R4                        \
	BNE done                          \
	MOVD $const_maskDead, R6          \
	TST R6, R4                        \
	BEQ done                          \
	MOVWU const_offsetIndex(R1), R3   /* the last use of a dead handle: push its record */ \
	MOVD $·deadList(SB), R6           \
	MOVD (R6), R6                     \
push: \
	MOVWU (R6), R4                    \
	MOVW R4, const_offsetNext(R1)     \
swap: \
	LDAXRW (R6), R5                   \
	CMPW R4, R5                       \
	BNE push                          \
	STLXRW R3, (R6), R7               \
	CBNZW R7, swap                    \
done: \
	RET                               \
twice: /* no export was out: undo, and count */ \
	LDAXR (R1), R3                    \
	ADD R2, R3, R4                    \
	STLXR R4, (R1), R5                \
	CBNZW R5, twice                   \
	MOVD $·deletedTwice(SB), R6       \
count: \
	LDAXR (R6), R3                    \
	ADD $1, R3, R4                    \
	STLXR R4, (R6), R5                \
	CBNZW R5, count                   \
	RET

TEXT ·deleteReadOnly(SB), NOSPLIT|NOFRAME, $0-0
	DELETER(const_offsetCtx, const_unitReadOnly)

TEXT ·deleteWritable(SB), NOSPLIT|NOFRAME, $0-0
	DELETER(const_offsetCtx, const_unitWritable)

TEXT ·deleteLegacy(SB), NOSPLIT|NOFRAME, $0-0
	DELETER(const_offsetLegacyCtx, const_unitWritable)

// func deleterAddresses() (readOnly, writable, legacy uintptr)
// The addresses of the functions themselves: Go code would get those of wrappers.
TEXT ·deleterAddresses(SB), NOSPLIT, $0-24
	MOVD $·deleteReadOnly(SB), R0
	MOVD R0, readOnly+0(FP)
	MOVD $·deleteWritable(SB), R0
	MOVD R0, writable+8(FP)
	MOVD $·deleteLegacy(SB), R0
	MOVD R0, legacy+16(FP)
	RET

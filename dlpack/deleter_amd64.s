#include "textflag.h"
#include "go_asm.h"

// void deleter(struct *self): leaf functions of the C calling convention. They use no stack, none of Go's fixed registers
// (R14, X15), and only registers that a C function may overwrite: AX, CX, DX and R8 are free on every system. The argument
// comes in DI, on Windows in CX. The first instruction is ENDBR64, which processors without such checks take for a NOP.

#ifdef GOOS_windows
#define SELF CX
#else
#define SELF DI
#endif

#define DELETER(ctx, unit) \
	BYTE $0xF3; BYTE $0x0F; BYTE $0x1E; BYTE $0xFA \
	MOVQ ctx(SELF), DX                /* the record: its word, then its number and a link */ \
	MOVQ $unit, R8                    \
	MOVQ R8, AX                       \
	NEGQ AX                           \
	LOCK                              \
	XADDQ AX, (DX)                    /* AX: the word before */ \
	MOVQ $const_maskExports, CX       \
	TESTQ CX, AX                      \
	JEQ twice                         \
	SUBQ R8, AX                       /* the word now */ \
	MOVQ $const_maskBusy, CX          \
	TESTQ CX, AX                      \
	JNE done                          \
	MOVQ $const_maskDead, CX          \
	TESTQ CX, AX                      \
	JEQ done                          \
	MOVL const_offsetIndex(DX), CX    /* the last use of a dead handle: push its record */ \
	MOVQ ·deadList(SB), R8            \
push: \
	MOVL (R8), AX                     \
	MOVL AX, const_offsetNext(DX)     \
	LOCK                              \
	CMPXCHGL CX, (R8)                 \
	JNE push                          \
done: \
	RET                               \
twice: /* no export was out: undo, and count */ \
	LOCK                              \
	XADDQ R8, (DX)                    \
	LOCK                              \
	INCQ ·deletedTwice(SB)            \
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
	LEAQ ·deleteReadOnly(SB), AX
	MOVQ AX, readOnly+0(FP)
	LEAQ ·deleteWritable(SB), AX
	MOVQ AX, writable+8(FP)
	LEAQ ·deleteLegacy(SB), AX
	MOVQ AX, legacy+16(FP)
	RET

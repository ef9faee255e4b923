// Package share passes tensors to other processes without copying them. The
// bytes outlive every consumer's use, whichever process dies, and return to
// their owner when the last consumer has released them or is dead.
//
//	owner, err := share.NewOwner()              // arenas that other processes map
//	frame, err := tensor.Make(owner, dtype.U8, shape.MustOf(1080, 1920, 3))
//	...                                         // write it: it is built in place
//	err = peer.Offer(ctx, frame)                // lend it; from now on it is immutable
//	frame.Release()                             // the consumer's lease keeps the bytes
//
// and in the other process
//
//	peer, err := share.Dial(ctx, "camera")
//	got, err := peer.Receive(ctx)               // a read-only tensor over the same bytes
//	got.Tensor.Release()                        // returns the lease
//
// # Connections
//
// [Owner.Listen] and [Dial] connect processes under a name; [Command] and
// [Owner.Parent] connect a process with its child. Both ends of a connection
// can offer. All peers of one owner are one audience: each can read every byte
// of the arenas that it is offered tensors of. Use a separate owner for each
// audience. Only processes of the same user can connect.
//
// # Ownership
//
// An owner's arena is a bounded range of memory that other processes map
// read-only; only the owner can write it. A tensor that is made in an arena
// ([Owner.Alloc], through [tensor.Make] or as the destination of a run) is an
// ordinary tensor, exclusive and writable, until its first offer. After that it
// is immutable. Each consumer holds a lease, and the tensor's handle is one
// holder among others: if it is released while leases are out, the bytes are in
// limbo, and the end of the last lease frees them. No scan is needed. A tensor
// outside of the arenas is copied into one by its offer, once for all peers of
// the call.
//
// Leases are recorded in the owner's own memory, in one row per connection.
// When the kernel reports that a peer is dead, its whole row is dropped. There
// is no count in shared memory that a crash could leave wrong, no daemon, and
// no name in a file system except that of the socket. If the owner dies, the
// tensors that consumers hold stay as they were: the kernel keeps the pages.
//
// A received tensor is never exclusive. Its views and exports (DLPack) keep the
// lease too. Closing a connection revokes nothing: the socket stays open until
// every lease on it has ended. A consumer that releases each tensor before it
// receives the next allocates no objects if it uses [Peer.ReceiveInto].
//
// A stopped peer holds the tensors that were sent to it, and cannot be made to
// release them. [WithStall] sets how long an owner waits for it,
// [Peer.Disconnect] stops sending and charges its leases to its account, and
// [WithPeerLimit] bounds that account. [SetBudget] bounds the resources that
// peers can make this process spend.
//
// Empty arenas are kept for later tensors. [Owner.Collect] returns them to the
// system, and so does an allocation that reaches the limit.
//
// # Devices
//
// [OnDevice] puts an owner's arenas into the memory of a device, such as one of
// package cuda. Peers get its tensors on the same device, which they find by
// its UUID, and everything above holds there: a lease ends when the work that
// reads the bytes is complete, and bytes are used again when all work on them
// is. The leases of a process that died with tensors of a device are in
// quarantine until the process is gone altogether. With [InPlace] tensors that
// other libraries of the process allocated on the device are not copied.
// docs/share.md has the differences.
//
// # Common bytes
//
// [Common] is for bytes that never change, such as a model's weights in the
// form that kernels read: one copy for all processes of a user, made by the
// first one and mapped by the others. The processes need not know of each
// other; they use the same key, a hash of everything that the bytes depend on.
// Common bytes need no owner and no lease.
//
// # Concurrency
//
// Everything may be called from any goroutine. A release never blocks. An offer
// waits while the consumer holds as much as it announced (its credits), unless
// the caller declines to wait ([NoWait]).
//
// docs/share.md specifies the protocol. Linux only: elsewhere [NewOwner]
// returns an error that matches errors.ErrUnsupported.
package share

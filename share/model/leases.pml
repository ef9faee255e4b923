/*
 * The lease protocol of docs/share.md, as a model that Spin explores in every
 * order of steps. One owner with two threads, two consumers; any process may
 * be killed between any two steps.
 *
 * A part of the protocol is added by a definition, so that each can be
 * explored on its own and all of them together:
 *
 *   TICKET    consumer 0 asks for tickets and passes them to consumer 1
 *   CLOSE     END, and connections that are closed while tensors are out
 *   POISON    the last consumer breaks a rule, or sees the owner break one
 *   RETIRE    arenas are announced, mapped, retired and unmapped
 *   TAKEBACK  and a retired arena in which nothing is held is used again, under another id
 *   LENT      with RETIRE and CLOSE: the arena is another allocator's, which must not have it back while a process has it open
 *   TWICE     consumers send a RELEASE twice
 *   DISCONNECT  the owner disconnects consumers, which may then lie: say that they hold nothing, and hold on
 *   DEVICE    consumers read from a device, which outlives their sockets
 *   EVENTS    the owner's device writes, also after the offer: consumers wait for it
 *   COMPLETE  with EVENTS: offers wait for the write instead
 *   NOHANDLE  with DEVICE: the kernel does not name the consumers' processes
 *   PEACE     nobody is killed: then every run must come to its proper end
 *
 * CONSUMERS, BLOCKS, WRITES, SERIALS, CREDITS, TICKETS, ARENAS and QUEUE bound it. A
 * definition M_... puts one fault in, and a run must then end in an assertion.
 *
 * What is asserted, by the names of the README:
 *   I1  nobody reads a block that is being written, or sees it change
 *   I2  when all connections are over, nothing is left
 *   I3  the peer never gets more than it said it would hold
 *   I4  nothing is offered after END, or in an arena after its RETIRE
 *   I5  a ticket is good until it is claimed, cancelled, or its minter ends
 *   I6  an arena counts as returned only when no process maps it; with LENT, not even one that is dying
 */

#ifndef CONSUMERS
#define CONSUMERS 2 /* 1 or 2 */
#endif
#ifndef BLOCKS
#define BLOCKS 1 /* of the arena: 1 or 2 */
#endif
#ifndef WRITES
#define WRITES 2 /* how often blocks are allocated and written, in all */
#endif
#ifndef SERIALS
#define SERIALS 2 /* leases that a connection may ever have: 1 to 3 */
#endif
#ifndef CREDITS
#define CREDITS 1 /* leases and tickets that a consumer will hold at once; consumer 0 one more if it mints */
#endif
#ifndef TICKETS
#define TICKETS 1 /* tickets that are ever minted */
#endif
#ifndef ARENAS
#define ARENAS 2 /* arenas that are ever made, one after the other */
#endif
#ifndef QUEUE
#define QUEUE 2 /* packets that a socket holds in one direction */
#endif

#ifdef TAKEBACK
#define USES 2 /* ids of one arena */
#else
#define USES 1
#endif
#define OF(c, u) ((c) * USES + (u))
#ifdef M_SAME_ID
#define ID 0
#else
#define ID use
#endif
#define AT(c, s) ((c) * SERIALS + (s))

mtype = { FREE, OWNED, SHARED, LIMBO, SPOILT }  /* a block */
mtype = { LIVE, RETIRED, RETURNED }             /* the arena */
mtype = { OFFER, CLAIMED, TICKETED, NO_UNKNOWN, NO_CREDIT, ARENA, RETIREMENT }
mtype = { RELEASE, MINT, CLAIM, CANCEL, MAPPED, UNMAPPED, RUBBISH }
mtype = { END }

/* ---- What the kernel keeps ---- */

chan toConsumer[2] = [QUEUE] of { mtype, byte, byte, byte }; /* serial or ticket, block, version */
chan toOwner[2] = [QUEUE] of { mtype, byte };                /* serial or ticket */
chan passed = [1] of { byte, byte };                         /* from consumer 0 to 1: ticket; block and version */
bool consumerEOF[2]; /* the owner reads an end of file behind what is queued */
bool ownerEOF[2];    /* the consumer does */
bool ownerDead;

/* ---- What the owner keeps, under its one lock: an atomic sequence holds it ---- */

mtype state[BLOCKS];
byte refs[BLOCKS];        /* leases and tickets on a block */
byte lease[2 * SERIALS];  /* block + 1 */
byte given[2];            /* the next serial */
byte owed[2];             /* leases and tickets of a row */
byte ticket[TICKETS];     /* block + 1; all in consumer 0's row */
byte minted;
bool open[2];             /* the row stands */
bool sending[2];          /* a lease is recorded, its offer not sent */
bool sentEnd[2], gotEnd[2], poisoned[2];
bool lost[2];             /* disconnected: what it holds is in quarantine */
mtype arena = LIVE;
byte use;                 /* the arena's id: how often it was taken back */
bool known[2 * USES];     /* ARENA was sent, and neither UNMAPPED nor the end of file came */
bool ready[2 * USES];     /* MAPPED came */
bool told[2 * USES];      /* RETIRE was sent */
byte writes, arenas;
bool finished;
#ifdef NOHANDLE
bool spoilt[BLOCKS];      /* a device may read it for ever: it is never used again */
#endif

/* ---- What is true, whether anybody in the protocol knows it or not ---- */

byte version[BLOCKS];
byte readers[BLOCKS];     /* tensors of living consumers over the block */
byte device[BLOCKS];      /* devices that read it */
#ifdef EVENTS
bool writing[BLOCKS];     /* the owner's device has not finished */
bool broken[BLOCKS];      /* and never will: it died before */
#endif
bool maps[2 * USES];      /* the consumer maps the arena under the id */
bool ticketOver[TICKETS]; /* claimed, cancelled or dropped with its row */
bool hup[2];              /* the consumer's socket is closed altogether, not for writing only */
bool dead[2];             /* the process handle of a dead consumer is readable; its devices are torn down */

/* ---- What a consumer keeps ---- */

#ifdef M_SUBLEASE
#define HELD (2 * SERIALS + 1) /* and what consumer 1 has from consumer 0 */
#else
#define HELD (2 * SERIALS)
#endif
byte held[HELD];      /* version + 1 */
byte heldBlock[HELD];
byte holds[2];
#ifdef TAKEBACK
byte heldUse[HELD];   /* the id of the arena in the offer */
byte holdsIn[2 * USES];
#define HOLDS(c, u) holdsIn[OF(c, u)]
#define PUT(b) ((b) + BLOCKS * ID) /* block and id in one field of a message */
#define GET u = b / BLOCKS; b = b % BLOCKS
#else
#define HOLDS(c, u) holds[c]
#define PUT(b) b
#define GET skip
#endif
byte onDevice[2];     /* block + 1 */

/* Choices among few: SERIALS and BLOCKS are at most 3 and 2. */
#if BLOCKS > 1
#define ANY(x) (state[0] == x || state[1] == x)
#define IFBLOCK(x) if :: state[0] == x -> b = 0 :: state[1] == x -> b = 1 fi
#else
#define ANY(x) (state[0] == x)
#define IFBLOCK(x) b = 0
#endif
#if SERIALS == 1
#define IFHELD s = 0
#elif SERIALS > 2
#define IFHELD if :: held[AT(c, 0)] -> s = 0 :: held[AT(c, 1)] -> s = 1 :: held[AT(c, 2)] -> s = 2 fi
#else
#define IFHELD if :: held[AT(c, 0)] -> s = 0 :: held[AT(c, 1)] -> s = 1 fi
#endif

#define ALIVE (!ownerDead && !finished)

#ifdef RETIRE
#define READY(c) (arena == LIVE && ready[OF(c, ID)])
#else
#define READY(c) true
#endif
#define TALKS(c) (open[c] && !sentEnd[c] && !poisoned[c] && !lost[c])
#ifdef TICKET
#define MOST(c) (CREDITS + 1 - (c))
#else
#define MOST(c) CREDITS
#endif
#define CREDIT(c) (owed[c] < MOST(c))
#ifdef M_SERIAL_REUSE
#define SERIAL(c) (lease[AT(c, 0)] == 0 || lease[AT(c, 1)] == 0)
#else
#define SERIAL(c) (given[c] < SERIALS)
#endif
#define MAYOFFER(c) (TALKS(c) && !gotEnd[c] && !sending[c] && READY(c) && CREDIT(c) && SERIAL(c))

/* What the owner lets go of is free when its own device has written it. */
#if defined(EVENTS) && !defined(M_REUSE_WRITING)
#define VACANT(b) (state[b] == FREE && !writing[b])
#else
#define VACANT(b) (state[b] == FREE)
#endif
#if defined(COMPLETE) && !defined(M_OFFER_EARLY)
#define WRITTEN(b) (!writing[b])
#else
#define WRITTEN(b) true
#endif
#if BLOCKS > 1
#define ANYVACANT (VACANT(0) || VACANT(1))
#define IFVACANT if :: VACANT(0) -> b = 0 :: VACANT(1) -> b = 1 fi
#else
#define ANYVACANT VACANT(0)
#define IFVACANT b = 0
#endif

#ifdef DEVICE
#if defined(M_DEVICE_EOF) || defined(NOHANDLE)
#define OVER(c) true
#else
#define OVER(c) dead[c]
#endif
#elif defined(LENT) && !defined(M_LENT_EOF)
#ifdef M_LENT_HANGUP
#define SHUT(c) gotEnd[c]
#else
#define SHUT(c) (gotEnd[c] && !hup[c]) /* in order, and living */
#endif
#define OVER(c) (dead[c] || !known[c] || !ready[c] && SHUT(c))
#elif defined(DISCONNECT) && !defined(M_QUARANTINE_EOF)
#define OVER(c) (!lost[c] || dead[c])
#else
#define OVER(c) true
#endif

/* ---- The owner's table ---- */

inline free(b) {
#ifdef NOHANDLE
  if :: spoilt[b] -> state[b] = SPOILT :: else -> state[b] = FREE fi
#else
  state[b] = FREE
#endif
}

inline unref(b) {
  refs[b]--;
  if
  :: state[b] == LIMBO && refs[b] == 0 -> free(b)
  :: else
  fi
}

/* newSerial takes the next serial of c. */
inline newSerial(c, s) {
#ifdef M_SERIAL_REUSE
  if :: lease[AT(c, 0)] == 0 -> s = 0 :: else -> s = 1 fi
#else
  s = given[c];
  given[c]++
#endif
}

inline record(c, s, b) {
  lease[AT(c, s)] = b + 1;
  refs[b]++;
  owed[c]++
}

inline letGo(b) {
  if
#ifndef M_EARLY_REUSE
  :: refs[b] > 0 -> state[b] = LIMBO
#endif
  :: else -> free(b)
  fi
}

inline dropTicket(t) {
#ifndef M_TICKET_NOREF
  unref(ticket[t] - 1);
#endif
  ticket[t] = 0;
  owed[0]--;
  ticketOver[t] = true
}

/* dropRow is what the end of a connection does. */
inline dropRow(c) {
#if !defined(M_COUNTER) && !defined(M_NO_RECLAIM)
  for (i : 0 .. SERIALS - 1) {
    if
    :: lease[AT(c, i)] ->
#if defined(NOHANDLE) && !defined(M_UNSPOILT)
       spoilt[lease[AT(c, i)] - 1] = true;
#endif
       unref(lease[AT(c, i)] - 1); lease[AT(c, i)] = 0; owed[c]--
    :: else
    fi
  }
  for (i : 0 .. TICKETS - 1) {
    if
    :: c == 0 && ticket[i] -> dropTicket(i)
    :: else
    fi
  }
#endif
  i = 0;
  known[OF(c, 0)] = false;
  ready[OF(c, 0)] = false;
#ifdef TAKEBACK
  known[OF(c, 1)] = false;
  ready[OF(c, 1)] = false;
#endif
  open[c] = false;
  ownerEOF[c] = true
}

/* I1, where the owner writes. */
inline untouched(b) { assert(readers[b] == 0 && device[b] == 0) }

/* ---- The owner's first thread: writes and offers ---- */

proctype program() {
  byte b, c, s, i;
  do
  :: atomic { /* a block is taken, and written in a step of its own */
       ALIVE && arena == LIVE && writes < WRITES && ANYVACANT ->
       IFVACANT;
#ifdef EVENTS
       assert(!writing[b]);
       writing[b] = true;
#endif
       state[b] = OWNED;
       version[b]++;
       writes++;
       untouched(b)
     }
     untouched(b)
  :: atomic {
       ALIVE && (ANY(OWNED) || ANY(SHARED)) && (MAYOFFER(0) || MAYOFFER(1)) ->
       if :: ANY(OWNED) -> IFBLOCK(OWNED) :: ANY(SHARED) -> IFBLOCK(SHARED) fi;
       if :: MAYOFFER(0) -> c = 0 :: MAYOFFER(1) -> c = 1 fi;
#if !defined(M_SEND_FIRST) && !defined(M_NOLOCK) && !defined(M_CREDIT_RACE)
       newSerial(c, s);
       state[b] = SHARED;
       record(c, s, b);
       sending[c] = true
#endif
     }
#ifdef M_NOLOCK
     atomic { /* what was checked may not hold any more */
       newSerial(c, s);
       state[b] = SHARED;
       record(c, s, b);
       sending[c] = true
     }
#endif
#ifdef M_CREDIT_RACE
     atomic {
       if
       :: TALKS(c) && SERIAL(c) && (state[b] == OWNED || state[b] == SHARED) -> newSerial(c, s); state[b] = SHARED; record(c, s, b); sending[c] = true
       :: else -> goto next
       fi
     }
#endif
#ifdef M_SEND_FIRST
     atomic { newSerial(c, s); sending[c] = true }
#endif
     if
     :: atomic {
          ALIVE && (consumerEOF[c] || ownerEOF[c] || nfull(toConsumer[c]) && WRITTEN(b)) ->
          if
          :: consumerEOF[c] || ownerEOF[c] /* sending fails, which is ignored: the row will go */
#ifdef DISCONNECT
          :: !(consumerEOF[c] || ownerEOF[c]) && lost[c] -> /* it was not sent, and is taken back */
             if
             :: lease[AT(c, s)] -> unref(b); lease[AT(c, s)] = 0; owed[c]--
             :: else
             fi
#endif
          :: else -> toConsumer[c]!OFFER, s, PUT(b), version[b]
          fi;
          sending[c] = false
        }
     :: ownerDead -> break
     fi;
#ifdef M_SEND_FIRST
     atomic { state[b] = SHARED; record(c, s, b) }
#endif
next:
  :: atomic { /* I2: all connections are over, and the owner lets go */
       ALIVE && !open[0] && !open[1] ->
       for (i : 0 .. BLOCKS - 1) {
         if :: state[i] == SHARED || state[i] == OWNED -> letGo(i) :: else fi;
#ifdef NOHANDLE
         assert((state[i] == FREE || state[i] == SPOILT) && refs[i] == 0)
#else
         assert(state[i] == FREE && refs[i] == 0)
#endif
       }
       assert(owed[0] == 0 && owed[1] == 0);
       finished = true;
       break
     }
  :: ownerDead -> break
  od
}

/* ---- The owner's second thread: answers, lets go, retires, closes ---- */

/* Answers need room in the queue; a peer that is gone gets none. */
#define HASMAIL(c) (open[c] && !poisoned[c] && nempty(toOwner[c]) && (nfull(toConsumer[c]) || consumerEOF[c] || ownerEOF[c]))
#define HUNGUP(c) (open[c] && consumerEOF[c] && (poisoned[c] || empty(toOwner[c])) && OVER(c))

inline answer(c, kind, x, b, v) {
  if :: consumerEOF[c] || ownerEOF[c] :: else -> toConsumer[c]!kind, x, b, v fi
}

/* claim turns ticket t into a lease of c, in one step. */
inline claim(c, t) {
  if
  :: ticket[t] == 0 || !TALKS(c) -> answer(c, NO_UNKNOWN, t, 0, 0)
  :: ticket[t] && TALKS(c) && !(CREDIT(c) && SERIAL(c)) ->
#ifdef M_TICKET_EATEN
     unref(ticket[t] - 1);
     ticket[t] = 0;
     owed[0]--;
#endif
     answer(c, NO_CREDIT, t, 0, 0)
  :: else ->
     assert(READY(c));
     b = ticket[t] - 1;
     newSerial(c, s);
     record(c, s, b);
     dropTicket(t);
     answer(c, CLAIMED, s, PUT(b), version[b])
  fi
}

inline mint(c, x) {
  if
  :: lease[AT(c, x)] && minted < TICKETS && CREDIT(c) && arena == LIVE ->
     ticket[minted] = lease[AT(c, x)];
#ifndef M_TICKET_NOREF
     refs[lease[AT(c, x)] - 1]++;
#endif
     owed[c]++;
     answer(c, TICKETED, minted, 0, 0);
     minted++
  :: else -> answer(c, NO_CREDIT, 0, 0, 0)
  fi
}

proctype server() {
  byte b, c, s, x, i;
#ifdef RETIRE
  byte u;
#endif
  mtype kind;
  do
  :: atomic {
       ALIVE && (HASMAIL(0) || HASMAIL(1)) ->
       if :: HASMAIL(0) -> c = 0 :: HASMAIL(1) -> c = 1 fi;
       toOwner[c]?kind, x;
       if
       :: kind == RELEASE ->
          if
          :: lease[AT(c, x)] -> unref(lease[AT(c, x)] - 1); lease[AT(c, x)] = 0; owed[c]--
          :: else /* released already */
          fi
#ifdef TICKET
       :: kind == MINT -> mint(c, x)
       :: kind == CLAIM -> claim(c, x)
       :: kind == CANCEL -> if :: ticket[x] -> dropTicket(x) :: else fi
#endif
       :: kind == END -> gotEnd[c] = true
       :: kind == MAPPED -> ready[OF(c, x)] = true
       :: kind == UNMAPPED -> known[OF(c, x)] = false; ready[OF(c, x)] = false
       :: kind == RUBBISH ->
          poisoned[c] = true;
          ownerEOF[c] = true; /* it holds nothing of the consumer's and may say so at once */
#ifdef M_POISON_DROPS
          dropRow(c)
#endif
       fi;
       s = 0; x = 0; b = 0; c = 0; kind = 0
     }
  :: atomic {
       ALIVE && (HUNGUP(0) || HUNGUP(1)) ->
       if :: HUNGUP(0) -> c = 0 :: HUNGUP(1) -> c = 1 fi;
       dropRow(c);
       c = 0
     }
  :: atomic {
       ALIVE && ANY(SHARED) -> IFBLOCK(SHARED); letGo(b); b = 0
     }
#ifdef M_COUNTER
  :: atomic { ALIVE && state[0] == LIMBO && refs[0] == 0 -> state[0] = FREE }
#endif
#ifdef CLOSE
#ifdef M_END_OVERTAKES
#define INORDER(c) true
#else
#define INORDER(c) (!sending[c])
#endif
#define MAYEND(c) (TALKS(c) && INORDER(c) && nfull(toConsumer[c]))
#define MAYSHUT(c) (open[c] && !ownerEOF[c] && (sentEnd[c] || consumerEOF[c]))
  :: atomic {
       ALIVE && (MAYEND(0) || MAYEND(1)) ->
       if :: MAYEND(0) -> c = 0 :: MAYEND(1) -> c = 1 fi;
       answer(c, END, 0, 0, 0);
       sentEnd[c] = true;
#ifdef M_OWN_CLOSE
       dropRow(c);
#endif
       c = 0
     }
  :: atomic { /* it holds nothing of the consumer's */
       ALIVE && (MAYSHUT(0) || MAYSHUT(1)) ->
       if :: MAYSHUT(0) -> ownerEOF[0] = true :: MAYSHUT(1) -> ownerEOF[1] = true fi
     }
#endif
#ifdef DISCONNECT
#define MAYLOSE(c) (open[c] && !lost[c])
  :: atomic { /* END goes if there is room for it: a queue in the owner is not in the model */
       ALIVE && (MAYLOSE(0) || MAYLOSE(1)) ->
       if :: MAYLOSE(0) -> c = 0 :: MAYLOSE(1) -> c = 1 fi;
       lost[c] = true;
       if :: !sentEnd[c] && nfull(toConsumer[c]) -> answer(c, END, 0, 0, 0) :: else fi;
       sentEnd[c] = true;
#ifdef M_REVOKE_SENT
       for (i : 0 .. SERIALS - 1) { /* an offer that was sent and not read is taken back too */
         if
         :: lease[AT(c, i)] && held[AT(c, i)] == 0 -> unref(lease[AT(c, i)] - 1); lease[AT(c, i)] = 0; owed[c]--
         :: else
         fi
       }
       i = 0;
#endif
       c = 0
     }
#endif
#ifdef RETIRE
#ifdef M_RETIRE_OVERTAKES
#define NOOFFER true
#else
#define NOOFFER (!sending[0] && !sending[1])
#endif
#define MAYTELL(c) (arena == LIVE && TALKS(c) && !known[OF(c, ID)] && nfull(toConsumer[c]))
#define MAYRETIRE(c, u) ((arena == RETIRED || u < ID) && open[c] && !poisoned[c] && known[OF(c, u)] && !told[OF(c, u)] && nfull(toConsumer[c]))
#ifdef M_RETIRE_UNCOUNTED
#define USED(c) false
#else
#ifdef M_ARENA_UNCOUNTED
#define USED(c) (ready[OF(c, 0)] || ready[OF(c, USES - 1)])
#else
#define USED(c) (known[OF(c, 0)] || known[OF(c, USES - 1)])
#endif
#endif
  :: atomic {
       ALIVE && (MAYTELL(0) || MAYTELL(1)) ->
       if :: MAYTELL(0) -> c = 0 :: MAYTELL(1) -> c = 1 fi;
       known[OF(c, ID)] = true;
       answer(c, ARENA, ID, 0, 0);
       c = 0
     }
  :: atomic { /* its blocks may be in limbo, but a ticket stays good */
       ALIVE && arena == LIVE && arenas < ARENAS && NOOFFER && ticket[0] == 0 && !ANY(OWNED) && !ANY(SHARED) ->
       arena = RETIRED
     }
  :: atomic {
       ALIVE && (MAYRETIRE(0, 0) || MAYRETIRE(1, 0) || MAYRETIRE(0, USES - 1) || MAYRETIRE(1, USES - 1)) ->
       if
       :: MAYRETIRE(0, 0) -> c = 0
       :: MAYRETIRE(1, 0) -> c = 1
#ifdef TAKEBACK
       :: MAYRETIRE(0, 1) -> c = 0; u = 1
       :: MAYRETIRE(1, 1) -> c = 1; u = 1
#endif
       fi;
       told[OF(c, u)] = true;
       answer(c, RETIREMENT, u, 0, 0);
       c = 0; u = 0
     }
  :: atomic { /* I6 */
       ALIVE && arena == RETIRED && !USED(0) && !USED(1) && !ANY(LIMBO) ->
       arena = RETURNED;
       assert(!maps[0] && !maps[1]);
#ifdef TAKEBACK
       assert(!maps[2] && !maps[3]);
#endif
       arenas++
     }
  :: atomic {
       ALIVE && arena == RETURNED && arenas < ARENAS ->
       arena = LIVE;
       told[0] = false;
       told[1] = false;
#ifdef TAKEBACK
       told[2] = false;
       told[3] = false;
#endif
       use = 0
     }
#ifdef TAKEBACK
  :: atomic { /* nothing in it is held, so it need not wait for UNMAPPED */
       ALIVE && arena == RETIRED && use == 0 && !ANY(LIMBO) ->
#ifdef M_SAME_ID
       told[OF(0, 0)] = false; told[OF(1, 0)] = false;
#endif
       use = 1;
       arena = LIVE
     }
#endif
#endif
#ifndef PEACE
  :: atomic { ALIVE -> ownerDead = true; ownerEOF[0] = true; ownerEOF[1] = true; break }
#endif
  :: finished -> break
  od
}

/* ---- A consumer ---- */

#define SEES_EOF (ownerEOF[c] && empty(toConsumer[c]))
#ifdef LENT
#define MAYSEND (!ownerDead && nfull(toOwner[c]) && !consumerEOF[c])
#else
#define MAYSEND (!ownerDead && nfull(toOwner[c]))
#endif

inline hold(s, b, v) {
  assert(!cGotEnd);                       /* I4 */
#ifdef RETIRE
#ifdef TAKEBACK
  assert(maps[OF(c, u)] && !retiring[u]); /* I4 */
  heldUse[AT(c, s)] = u;
  holdsIn[OF(c, u)]++;
  u = 0;
#else
  assert(maps[c] && !retiring[0]);        /* I4 */
#endif
#endif
  held[AT(c, s)] = v + 1;
  heldBlock[AT(c, s)] = b;
  readers[b]++;
  holds[c]++;
  assert(holds[c] <= MOST(c))             /* I3 */
}

inline drop(s) {
  readers[heldBlock[AT(c, s)]]--;
#ifdef TAKEBACK
  holdsIn[OF(c, heldUse[AT(c, s)])]--;
  heldUse[AT(c, s)] = 0;
#endif
  held[AT(c, s)] = 0;
  heldBlock[AT(c, s)] = 0;
  holds[c]--
}

proctype consumer(byte c) {
  byte s, b, v, i;
  byte pending;        /* serial + 1: let go, its RELEASE not sent */
  byte have;           /* ticket + 1 */
  bool asking;         /* a question is open */
  bool cSentEnd, cGotEnd, blind, rude, again;
#ifdef RETIRE
  bool retiring[USES], owesMapped[USES], owesUnmapped[USES];
#endif
#ifdef TAKEBACK
  byte u;
#endif
  mtype kind;
  do
  :: atomic { /* a message is read */
       !blind && nempty(toConsumer[c]) ->
       toConsumer[c]?kind, s, b, v;
       if
       :: kind == OFFER ->
          GET;
          if
          :: !cSentEnd -> hold(s, b, v)
          :: else -> /* released at once, if that can be sent: else it goes with the row */
             if :: MAYSEND -> toOwner[c]!RELEASE, s :: else fi
          fi
#ifdef TICKET
       :: kind == CLAIMED -> GET; hold(s, b, v); asking = false; have = 0
       :: kind == TICKETED -> asking = false; have = s + 1
       :: kind == NO_CREDIT -> asking = false
       :: kind == NO_UNKNOWN ->
          assert(ticketOver[s] || sentEnd[c]); /* I5 */
          asking = false;
          have = 0
#endif
       :: kind == END -> cGotEnd = true
#ifdef RETIRE
#if defined(LENT) && !defined(M_LENT_OPENS)
       :: kind == ARENA && cSentEnd /* END has said that it opens none */
       :: kind == ARENA && !cSentEnd -> maps[OF(c, s)] = true; owesMapped[s] = true
#else
       :: kind == ARENA -> maps[OF(c, s)] = true; owesMapped[s] = true
#endif
       :: kind == RETIREMENT -> retiring[s] = true
#endif
       fi;
       s = 0; b = 0; v = 0; kind = 0
     }
#ifndef PEACE
  :: atomic { /* I1: what is held is read */
       holds[c] > 0 ->
       IFHELD;
       b = heldBlock[AT(c, s)];
#if defined(EVENTS) && !defined(M_NO_EVENT) && !defined(COMPLETE)
       !writing[b]; /* the consumer's stream waits for the owner's event */
#endif
       assert(version[b] == held[AT(c, s)] - 1 && (state[b] == SHARED || state[b] == LIMBO));
#ifdef EVENTS
       assert(!writing[b]);
#ifdef COMPLETE
       assert(!broken[b]); /* what was offered is complete, whoever dies */
#else
       assert(!broken[b] || ownerDead);
#endif
#endif
#ifdef TAKEBACK
       assert(maps[OF(c, heldUse[AT(c, s)])]);
#elif defined(RETIRE)
       assert(maps[c]);
#endif
       s = 0; b = 0
     }
#endif
  :: atomic { /* a tensor is let go, and its RELEASE sent in a step of its own */
       holds[c] > 0 && pending == 0 && onDevice[c] == 0 ->
       IFHELD;
       pending = s + 1;
       b = heldBlock[AT(c, s)];
       drop(s);
       s = 0
     }
#ifdef M_COUNTER
     refs[b]--;
#endif
     b = 0
  :: atomic {
       pending && (MAYSEND || ownerEOF[c] || blind) ->
       if
       :: MAYSEND && !blind -> toOwner[c]!RELEASE, pending - 1
       :: else /* sending fails, which is ignored */
       fi;
#ifdef TWICE
       if :: !again -> again = true :: pending = 0 fi
#else
       pending = 0
#endif
     }
#ifdef DEVICE
  :: atomic { holds[c] > 0 && onDevice[c] == 0 -> IFHELD; b = heldBlock[AT(c, s)]; onDevice[c] = b + 1; device[b]++; s = 0; b = 0 }
  :: atomic { onDevice[c] -> device[onDevice[c] - 1]--; onDevice[c] = 0 }
#endif
#ifdef TICKET
#ifdef M_SUBLEASE
  :: atomic { c == 0 && holds[0] > 0 && nfull(passed) -> IFHELD; passed!heldBlock[AT(c, s)], held[AT(c, s)]; s = 0 }
  :: atomic { c == 1 && nempty(passed) && held[2 * SERIALS] == 0 -> passed?b, v; held[2 * SERIALS] = v; heldBlock[2 * SERIALS] = b; readers[b]++; b = 0; v = 0 }
#else
  :: atomic { c == 0 && holds[0] > 0 && !asking && !have && !cSentEnd && !blind && MAYSEND && minted < TICKETS -> IFHELD; toOwner[c]!MINT, s; asking = true; s = 0 }
  :: atomic { c == 0 && have && nfull(passed) && !consumerEOF[1] -> passed!have, 0; if :: have = 0 :: skip fi }
  :: atomic { c == 0 && have && MAYSEND && !blind -> toOwner[c]!CANCEL, have - 1; have = 0 }
  :: atomic { c == 1 && nempty(passed) && have == 0 -> passed?have, s; s = 0 }
  :: atomic { c == 1 && have && !asking && !cSentEnd && !blind && MAYSEND && READY(c) -> toOwner[c]!CLAIM, have - 1; asking = true }
#endif
#endif
#ifdef RETIRE
#ifdef M_UNMAP_HELD
#define MAYUNMAP(u) (retiring[u] && !owesMapped[u])
#elif defined(LENT)
#define MAYUNMAP(u) ((retiring[u] || cSentEnd) && maps[c] && !owesMapped[u] && holds[c] == 0 && pending == 0)
#else
#define MAYUNMAP(u) (retiring[u] && !owesMapped[u] && HOLDS(c, u) == 0 && pending == 0)
#endif
  :: atomic { owesMapped[0] && !blind && MAYSEND -> toOwner[c]!MAPPED, 0; owesMapped[0] = false }
  :: atomic { MAYUNMAP(0) -> retiring[0] = false; maps[OF(c, 0)] = false; owesUnmapped[0] = true }
  :: atomic { owesUnmapped[0] && !blind && MAYSEND -> toOwner[c]!UNMAPPED, 0; owesUnmapped[0] = false }
#ifdef TAKEBACK
  :: atomic { owesMapped[1] && !blind && MAYSEND -> toOwner[c]!MAPPED, 1; owesMapped[1] = false }
  :: atomic { MAYUNMAP(1) -> retiring[1] = false; maps[OF(c, 1)] = false; owesUnmapped[1] = true }
  :: atomic { owesUnmapped[1] && !blind && MAYSEND -> toOwner[c]!UNMAPPED, 1; owesUnmapped[1] = false }
#endif
#endif
#ifdef CLOSE
  :: atomic { !cSentEnd && !asking && !blind && MAYSEND -> toOwner[c]!END, 0; cSentEnd = true }
#ifdef LENT
#ifdef M_LENT_SHUT
#define CLOSED true
#else
#define CLOSED (!maps[c] && !owesMapped[0] && !owesUnmapped[0])
#endif
  :: atomic { /* it shuts its side down, and reads on */
       cSentEnd && holds[c] == 0 && pending == 0 && CLOSED && !consumerEOF[c] -> consumerEOF[c] = true
     }
  :: SEES_EOF && (ownerDead || consumerEOF[c]) -> goto leaves
#else
  :: cSentEnd && holds[c] == 0 -> goto leaves
#endif
#endif
#ifdef DISCONNECT
  :: atomic { lost[c] && !blind -> blind = true; consumerEOF[c] = true } /* the lie */
#endif
#ifdef POISON
  :: atomic { c == CONSUMERS - 1 && !rude && !blind && MAYSEND -> toOwner[c]!RUBBISH, 0; rude = true }
  :: atomic { /* it saw the owner break a rule */
       c == CONSUMERS - 1 && !blind -> blind = true;
#ifdef M_SHUT_HOLDING
       consumerEOF[c] = true
#endif
     }
#endif
#if defined(DISCONNECT) || defined(POISON) && !defined(M_SHUT_HOLDING)
  :: blind && holds[c] == 0 -> goto leaves
#endif
#ifndef LENT
  :: SEES_EOF && holds[c] == 0 -> goto leaves
#endif
#ifndef PEACE
  :: goto leaves /* by a kill: what it holds goes with its memory, before its socket */
#endif
  od;

leaves:
  atomic {
    for (i : 0 .. SERIALS - 1) {
      if :: held[AT(c, i)] -> drop(i) :: else fi
    }
#ifdef M_SUBLEASE
    if :: c == 1 && held[2 * SERIALS] -> readers[heldBlock[2 * SERIALS]]--; held[2 * SERIALS] = 0 :: else fi;
#endif
#ifdef LENT
    hup[c] = true; /* what it has open goes later */
#else
    maps[OF(c, 0)] = false;
    maps[OF(c, USES - 1)] = false;
#endif
    consumerEOF[c] = true;
    do :: toConsumer[c]?_, _, _, _ :: empty(toConsumer[c]) -> break od;
    if :: c == 1 -> do :: passed?_, _ :: empty(passed) -> break od :: else fi;
    i = 0; s = 0; b = 0; v = 0; pending = 0; have = 0; asking = false
  }
#if defined(DEVICE) || defined(DISCONNECT) || defined(LENT)
  atomic { /* a device is torn down after the socket is closed */
#ifdef DEVICE
    if :: onDevice[c] -> device[onDevice[c] - 1]--; onDevice[c] = 0 :: else fi;
#endif
#ifdef LENT
    maps[c] = false;
#endif
    dead[c] = true
  }
#endif
}

#ifdef EVENTS
/* ---- The owner's device ---- */

proctype engine() {
  byte b;
end:
  do
  :: atomic { writing[0] -> b = 0; goto done }
#if BLOCKS > 1
  :: atomic { writing[1] -> b = 1; goto done }
#endif
  od;
done:
  atomic {
    writing[b] = false;
    if :: ownerDead -> broken[b] = true :: true fi;
    b = 0;
    goto end
  }
}
#endif

init {
  byte i;
  atomic {
    for (i : 0 .. BLOCKS - 1) { state[i] = FREE }
    open[0] = true;
    run program();
    run server();
#ifdef EVENTS
    run engine();
#endif
    run consumer(0);
#if CONSUMERS > 1
    open[1] = true;
    run consumer(1)
#endif
  }
}

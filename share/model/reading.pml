/*
 * Who reads a connection: share/read.go, as a model that Spin explores in
 * every order of steps. Whoever waits for what a packet says reads packets
 * for all; a goroutine in the background does so while nobody waits, gives
 * way when somebody does, and ends the connection.
 *
 * Two goroutines wait, each for a token that a packet or another goroutine
 * gives, or until its context ends. WAITS, PACKETS and OTHERS bound it. A
 * definition M_... puts one fault in, and a run must then end in an assertion.
 *
 * What is asserted, by the names of the README:
 *   R1  one goroutine reads at a time
 *   R2  when nothing can move any more, every packet has been read, and the
 *       end of file has ended the connection
 *   R3  then nobody waits who has a token, whose context is over, or whose
 *       connection is
 *   R4  then the background does not read while somebody waits
 */

#ifndef WAITS
#define WAITS 1 /* calls of await by each goroutine */
#endif
#ifndef PACKETS
#define PACKETS 1 /* that the peer sends before its end of file */
#endif
#ifndef OTHERS
#define OTHERS 0 /* tokens that do not come by a packet */
#endif

#define NOBODY 2 /* a packet that nobody waits for */
#define EOF 3

chan socket = [PACKETS + 1] of { byte };
bool role = true;      /* the token: nobody reads */
byte waiters;          /* goroutines in await */
bool parked;           /* whoever has the role waits for a packet, and would be missed elsewhere */
bool deadline;         /* a receive fails: whoever waits for a packet is to look up */
bool idle;             /* a token that wakes the background */
bool asleep;           /* the background waits for it */
bool failed, over;
bool ready[2];         /* a token for each that waits */
bool ended[2];         /* its context is over */
byte watched = NOBODY; /* whose context's end interrupts */
bool eofSent;

/* What is true, whether anybody knows it or not. */
byte reading;          /* goroutines in a receive */
bool waiting[2];       /* in await, and not about to leave */
bool background_reads;

/* interrupt makes whoever is receiving look up. */
inline interrupt() {
  if
  :: parked -> deadline = true
  :: else
  fi
}

/* receive is readOne: it waits for a packet, and does what it says. */
inline receive() {
  atomic {
    reading++;
    assert(reading == 1) /* R1 */
  }
  if
  :: atomic { deadline -> reading--; background_reads = false }
     parked = false;
     deadline = false
  :: atomic {
       !deadline && nempty(socket) -> socket?p; reading--; background_reads = false;
       parked = false;
       if
       :: p < NOBODY -> ready[p] = true
       :: p == NOBODY
       :: p == EOF -> failed = true
       fi;
       p = 0
     }
  fi
}

proctype waiter(byte me) {
  byte p, n, left = WAITS;
  bool down;
  do
  :: left > 0 && !over ->
     left--;
     atomic { waiters++; n = waiters; waiting[me] = true }
#ifndef M_NO_WAY
     if
     :: n == 1 -> interrupt() /* the background gives way */
     :: else
     fi;
#endif
     if
     :: atomic { role -> role = false; watched = me }
        do /* readFor */
        ::
#ifndef M_PARK_LATE
           parked = true;
#endif
           if
           :: atomic { ready[me] -> ready[me] = false; waiting[me] = false } parked = false; break
           :: over || ended[me] -> waiting[me] = false; parked = false; break
           :: !ready[me] && !over && !ended[me] && failed -> parked = false; down = true; break
           :: else
           fi;
#ifdef M_PARK_LATE
           parked = true;
#endif
           receive()
        od;
        role = true;
        atomic { waiters--; n = waiters }
        if
#ifndef M_NO_WAKE
        :: n == 0 && asleep -> idle = true
#endif
        :: down -> idle = true
        :: else
        fi;
        if
        :: down ->
           if
           :: atomic { ready[me] -> ready[me] = false; waiting[me] = false }
           :: atomic { over || ended[me] -> waiting[me] = false }
           fi
        :: else
        fi;
        down = false
     :: atomic { ready[me] -> ready[me] = false; waiting[me] = false }
        goto leave
     :: atomic { over || ended[me] -> waiting[me] = false }
leave:
        atomic { waiters--; n = waiters }
        if
#ifndef M_NO_WAKE
        :: n == 0 && asleep -> idle = true
#endif
        :: else
        fi
     fi;
     n = 0
  :: left == 0 || over -> break
  od
}

proctype background() {
  byte p;
  do
  :: atomic { role -> role = false; watched = NOBODY }
     do
     :: !failed && waiters == 0 ->
#ifdef M_BACKGROUND_PARK_LATE
        if :: waiters > 0 -> break :: else fi;
        parked = true;
#else
        parked = true;
        if :: waiters > 0 -> parked = false; break :: else fi;
#endif
        background_reads = true;
        receive();
        if
        :: true
        :: true -> role = true; atomic { role -> role = false } /* a rest */
        fi
     :: failed || waiters > 0 -> break
     od;
     if
     :: failed -> break /* with the role: nobody reads any more */
     :: else
     fi;
     role = true;
     do /* awaitQuiet: a moment passes, and nobody or somebody has waited meanwhile */
     :: true ->
        if
        :: failed -> break
        :: !failed && waiters == 0 -> break
        :: !failed && waiters > 0 ->
#ifdef M_ASLEEP_LATE
           if
           :: waiters > 0 && !failed -> asleep = true; atomic { idle -> idle = false }
           :: else
           fi;
#else
           asleep = true;
           if
           :: waiters > 0 && !failed -> atomic { idle -> idle = false }
           :: else
           fi;
#endif
           asleep = false
        fi
     od
  od;
  over = true;
  interrupt()
}

proctype peer() {
  byte left = PACKETS;
  do
  :: left > 0 ->
     left--;
     if :: socket!0 :: socket!1 :: socket!NOBODY fi
  :: true -> break
  od;
  if
  :: atomic { socket!EOF; eofSent = true }
  :: true
  fi
}

/* Another goroutine gives a token: bytes came back by another way. */
proctype other() {
  byte left = OTHERS, to;
  do
  :: left > 0 ->
     left--;
     if :: to = 0 :: to = 1 fi;
     ready[to] = true;
#ifndef M_SIGNAL_SILENT
     interrupt()
#endif
  :: true -> break
  od
}

/* A context ends. Whoever watches it hears so, at once or as soon as it watches. */
proctype context(byte whose) {
  if
  :: true -> goto done
  :: true
  fi;
  ended[whose] = true;
#ifndef M_END_SILENT
  do
  :: watched == whose -> interrupt(); break
  :: !waiting[whose] -> break /* it saw so by itself */
  od;
#endif
done: skip
}

/* R2 to R4, when nothing else can move. */
proctype monitor() {
  timeout ->
  assert(empty(socket));
  assert(!eofSent || over);
  assert(!(waiting[0] && (ready[0] || ended[0] || over)));
  assert(!(waiting[1] && (ready[1] || ended[1] || over)));
  assert(!(background_reads && waiters > 0))
}

init {
  atomic {
    run waiter(0);
    run waiter(1);
    run background();
    run peer();
    run other();
    run context(0);
    run monitor()
  }
}

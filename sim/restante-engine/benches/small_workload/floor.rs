//! The same world as tasks of a plain async runtime whose time is paused: one sleeping task per datagram.

use std::{cell::RefCell, rc::Rc, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{LocalSet, spawn_local},
    time::{Instant, sleep, timeout},
};

use super::{protocol::*, *};

type Datagram = (usize, Vec<u8>);

struct Net {
    inboxes: RefCell<Vec<Option<UnboundedSender<Datagram>>>>,
    random: RefCell<u64>,
    start: Instant,
    kv: RefCell<Kv>,
    outcome: RefCell<Outcome>,
}

struct Socket {
    net: Rc<Net>,
    node: usize,
    inbox: UnboundedReceiver<Datagram>,
    buffer: Vec<u8>,
}

impl Net {
    fn random(&self) -> u64 {
        let mut state = self.random.borrow_mut();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn bind(self: &Rc<Self>, node: usize) -> Socket {
        let (sender, inbox) = unbounded_channel();
        self.inboxes.borrow_mut()[node] = Some(sender);
        Socket { net: self.clone(), node, inbox, buffer: vec![0; BUFFER_LEN] }
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl Socket {
    fn send(&self, to: usize, bytes: &[u8]) {
        self.net.outcome.borrow_mut().messages += 1;
        if self.net.random() % 100 < u64::from(LOSS_PERCENT) {
            return;
        }
        let latency = Duration::from_micros(LATENCY_MIN_US + self.net.random() % (LATENCY_MAX_US - LATENCY_MIN_US));
        let (net, from, bytes) = (self.net.clone(), self.node, bytes.to_vec());
        spawn_local(async move {
            sleep(latency).await;
            if let Some(inbox) = &net.inboxes.borrow()[to] {
                let _ = inbox.send((from, bytes));
            }
        });
    }

    async fn receive(&mut self) -> (usize, usize) {
        let (from, bytes) = self.inbox.recv().await.unwrap();
        self.buffer[..bytes.len()].copy_from_slice(&bytes);
        (from, bytes.len())
    }
}

async fn serve(net: Rc<Net>, node: usize) {
    let mut socket = net.bind(node);
    loop {
        let (from, len) = socket.receive().await;
        let request = &socket.buffer[..len];
        let reply = if node == KV { net.kv.borrow_mut().reply(request) } else { net.outcome.borrow_mut().on_post(request) };
        socket.send(from, &reply);
    }
}

struct Worker {
    socket: Socket,
    owner: u64,
    next_id: u64,
}

impl Worker {
    /// The length of the reply, and whether the request was repeated.
    async fn call(&mut self, to: usize, request: &[u8]) -> (usize, bool) {
        let mut repeated = false;
        loop {
            self.socket.send(to, request);
            let answered = timeout(Duration::from_millis(RETRY_MS), async {
                loop {
                    let (_, len) = self.socket.receive().await;
                    if get(&self.socket.buffer, 0) == get(request, 0) {
                        return len;
                    }
                }
            });
            if let Ok(len) = answered.await {
                return (len, repeated);
            }
            repeated = true;
            self.socket.net.outcome.borrow_mut().retries += 1;
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    async fn cas(&mut self, key: u64, version: u64, due_ms: u64, state: u64) -> Option<u64> {
        let bytes = request(self.id(), b'c', &[key, version, due_ms, self.owner, state]);
        let (_, repeated) = self.call(KV, &bytes).await;
        let won = get(&self.socket.buffer, 8);
        if won > 0 {
            return Some(won);
        }
        if repeated {
            let bytes = request(self.id(), b'g', &[key]);
            self.call(KV, &bytes).await;
            if [8, 24, 32].map(|at| get(&self.socket.buffer, at)) == [version + 1, self.owner, state] {
                return Some(version + 1);
            }
        }
        None
    }
}

async fn work(net: Rc<Net>, index: usize) {
    net.outcome.borrow_mut().boots += 1;
    let life = net.outcome.borrow().boots;
    let socket = net.bind(FIRST_WORKER + index);
    let mut worker = Worker { socket, owner: life << 8 | index as u64, next_id: life << 32 };
    loop {
        let bytes = request(worker.id(), b's', &[net.now_ms()]);
        let (len, _) = worker.call(KV, &bytes).await;
        let todo = pick(candidates(&worker.socket.buffer[..len]), || net.random());
        if todo.is_empty() {
            sleep(Duration::from_millis(IDLE_MS)).await;
        }
        for (key, version) in todo {
            let due_ms = net.now_ms() + LEASE_MS;
            let Some(version) = worker.cas(key, version, due_ms, LEASED).await else { continue };
            let bytes = post(worker.id(), key);
            worker.call(FIRST_RECEIVER + key as usize % RECEIVERS, &bytes).await;
            worker.cas(key, version, 0, SETTLED).await;
        }
    }
}

pub(crate) fn run(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let net = Rc::new(Net {
            inboxes: RefCell::new((0..NODES).map(|_| None).collect()),
            random: RefCell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            start: Instant::now(),
            kv: RefCell::new(Kv::new()),
            outcome: RefCell::default(),
        });
        (0..FIRST_WORKER).for_each(|node| drop(spawn_local(serve(net.clone(), node))));
        let workers: Vec<_> = (0..WORKERS).map(|index| spawn_local(work(net.clone(), index))).collect();
        sleep(Duration::from_millis(CRASH_MS)).await;
        workers[0].abort();
        sleep(Duration::from_millis(RESTART_MS - CRASH_MS)).await;
        spawn_local(work(net.clone(), 0));
        while net.kv.borrow().unsettled > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let mut outcome = net.outcome.take();
        outcome.sim_ms = net.now_ms();
        outcome
    })
}

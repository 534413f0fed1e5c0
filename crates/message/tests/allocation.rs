//! Once its buffers have grown, a connection's heads and bodies are read and written without
//! allocation: whatever comes, accepted or refused.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use subak_message::ambiguous::{ANSWERS, REQUESTS};
use subak_message::h1::{
    Asked, ChunkedDecoder, ConnectionOut, Progress, RequestOut, ResponseOut, parse_request,
    parse_response, write_request_head, write_response_head,
};
use subak_message::{HeadLimits, Known, RequestHead, ResponseHead};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to `System` unchanged; counting neither allocates nor unwinds, as the cell
// is initialised by a constant and needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System`, as `alloc` is the only source.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(of: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    of();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

/// Everything a connection keeps.
#[derive(Default)]
struct Buffers {
    request: RequestHead,
    answer: ResponseHead,
    decoder: ChunkedDecoder,
    out: Vec<u8>,
}

impl Buffers {
    fn request(&mut self, bytes: &[u8]) {
        let limits = HeadLimits::default();
        let Ok(Progress::Complete { consumed, framing }) =
            parse_request(bytes, &limits, &mut self.request)
        else {
            return;
        };
        let _ = self.request.fields.set_known(Known::XForwardedFor, b"192.0.2.1");
        let _ = self.request.fields.set(b"X-Env", b"prod");
        let to = RequestOut {
            target: self.request.forward_target(),
            default_host: b"endpoint",
            body: framing.body,
            connection: ConnectionOut::Implied,
            expect_continue: false,
        };
        self.out.clear();
        write_request_head(&mut self.out, &self.request, &to);
        self.body(&bytes[consumed..]);
    }

    fn answer(&mut self, bytes: &[u8]) {
        let limits = HeadLimits::default();
        let asked = Asked::default();
        let Ok(Progress::Complete { consumed, framing }) =
            parse_response(bytes, &limits, &asked, &mut self.answer)
        else {
            return;
        };
        self.out.clear();
        let to = ResponseOut { body: framing.body, connection: ConnectionOut::Implied };
        write_response_head(&mut self.out, &self.answer, &to);
        self.body(&bytes[consumed..]);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.decoder.reset();
        let mut at = 0;
        while at < bytes.len() && !self.decoder.is_finished() {
            let Ok(step) = self.decoder.next(&bytes[at..]) else { return };
            at += step.skip + step.data;
        }
    }
}

#[test]
fn messages_are_read_and_written_without_allocation() {
    let mut buffers = Buffers::default();
    let mut round = || {
        REQUESTS.iter().for_each(|case| buffers.request(case.bytes));
        ANSWERS.iter().for_each(|case| buffers.answer(case.bytes));
    };
    assert!(allocations(&mut round) > 0, "the buffers grow in the first round");
    assert_eq!(allocations(&mut round), 0);
}

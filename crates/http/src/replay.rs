//! Keeping a request's body while it is sent, so that it can be sent again.

use std::task::{Context, Poll, ready};

use subak_message::{BodyLength, Fields};
use subak_net::Chunk;

use crate::exchange::{BodyPart, ClientSide};
use crate::failure::ClientFault;

/// A request's body on its way to one endpoint after another.
#[derive(Debug)]
pub(crate) struct Replay {
    length: BodyLength,
    /// What has been read of the client so far; empty for good once it was too much.
    kept: Vec<u8>,
    limit: usize,
    overflowed: bool,
    /// How much of `kept` this try has been given.
    position: usize,
    ended: Option<Option<Box<Fields>>>,
    end_given: bool,
}

impl Replay {
    /// A body of which nothing has been read; at most `limit` bytes are kept.
    pub(crate) fn new(length: BodyLength, limit: usize) -> Replay {
        let ended = length.is_empty().then_some(None);
        Replay {
            length,
            kept: Vec::new(),
            limit,
            overflowed: false,
            position: 0,
            ended,
            end_given: length.is_empty(),
        }
    }

    /// How long the body is, as announced.
    pub(crate) fn length(&self) -> BodyLength {
        self.length
    }

    /// Whether the body can be sent from its beginning once more.
    pub(crate) fn can_rewind(&self) -> bool {
        !self.overflowed
    }

    /// Begins again, for the next try.
    pub(crate) fn rewind(&mut self) {
        self.position = 0;
        self.end_given = self.length.is_empty();
    }

    /// Whether this try has been given everything.
    #[inline]
    pub(crate) fn is_given(&self) -> bool {
        self.end_given
    }

    /// The next part: first what was kept, then what the client sends.
    pub(crate) fn poll_next<C: ClientSide>(
        &mut self,
        client: &mut C,
        context: &mut Context<'_>,
    ) -> Poll<Result<BodyPart, ClientFault>> {
        if self.position < self.kept.len() {
            let chunk = Chunk::copied(&self.kept[self.position..]);
            self.position = self.kept.len();
            return Poll::Ready(Ok(BodyPart::Data(chunk)));
        }
        if let Some(trailers) = &self.ended {
            self.end_given = true;
            return Poll::Ready(Ok(BodyPart::End(trailers.clone())));
        }
        match ready!(client.poll_body(context))? {
            BodyPart::Data(chunk) => {
                self.keep(chunk.filled());
                Poll::Ready(Ok(BodyPart::Data(chunk)))
            }
            BodyPart::End(trailers) => {
                self.ended = Some(trailers.clone());
                self.end_given = true;
                Poll::Ready(Ok(BodyPart::End(trailers)))
            }
        }
    }

    fn keep(&mut self, data: &[u8]) {
        if self.overflowed {
            return;
        }
        if self.kept.len() + data.len() > self.limit {
            self.overflowed = true;
            self.kept = Vec::new();
            self.position = 0;
            return;
        }
        self.kept.extend_from_slice(data);
        self.position = self.kept.len();
    }
}

//! The body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame};
use tonic::Status;

/// What the member sends; what was read makes room for more.
pub(super) struct Answer {
    stream: RecvStream,
    data_ended: bool,
}

impl Answer {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, data_ended: false }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.data_ended {
            if let Some(data) = ready!(self.stream.poll_data(cx)) {
                return Poll::Ready(Some(self.taken(data).map(Frame::data).map_err(|error| super::broken(&error))));
            }
            self.data_ended = true;
        }
        let trailers = ready!(self.stream.poll_trailers(cx));
        Poll::Ready(
            trailers.map(|trailers| trailers.map(Frame::trailers)).map_err(|error| super::broken(&error)).transpose(),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}

impl Answer {
    fn taken(&mut self, data: Result<Bytes, h2::Error>) -> Result<Bytes, h2::Error> {
        let data = data?;
        self.stream.flow_control().release_capacity(data.len())?;
        Ok(data)
    }
}

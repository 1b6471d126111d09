//! The way out: whatever executes one attempt to deliver.

use std::convert::Infallible;

use restante_core::machine::{Post, PostResult};
use restante_kv::BoxFuture;
use tower::{Service, ServiceExt as _};

/// Executes attempts: any [`tower::Service`] from [`Post`] to [`PostResult`] that has no other error and can be cloned.
///
/// An attempt that is not wanted any more is dropped in the middle. A result says what is certain: see [`PostResult`].
pub trait Sender: Service<Post, Response = PostResult, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static {}

impl<S> Sender for S where
    S: Service<Post, Response = PostResult, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

/// [`Sender`] as an object.
pub(crate) trait DynSender: Send + Sync {
    fn send(&self, post: Post) -> BoxFuture<'static, PostResult>;
}

impl<S: Sender> DynSender for S {
    fn send(&self, post: Post) -> BoxFuture<'static, PostResult> {
        let ready = self.clone().oneshot(post);
        Box::pin(async move {
            match ready.await {
                Ok(result) => result,
                Err(never) => match never {},
            }
        })
    }
}

//! The HTTP API: one [`Operation`] a route, described in `openapi.json`.
//!
//! The router is made from [`Operation::ALL`] and from nothing else, and a test holds that list against the description.

mod answer;
mod body;
mod bounded;
mod connections;
mod handlers;
mod operation;
mod requests;
mod server;

pub use operation::Operation;
pub use requests::{PayloadBody, ReleaseHoldBody, RunOnceBody, Scheme, SendBody, SetHoldBody, SetIntakeBody, SigningBody};

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use restante_driver::BoundedRuns;
use tokio::sync::Semaphore;

pub(crate) use requests::message;
pub(crate) use server::serve;

use connections::Known;

use crate::Token;
use crate::fault::{Code, Fault};
use crate::site::Site;

/// The description of the API, OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../../openapi.json");

/// How long the rest of a request may take behind its headers.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answer of the store may take before the caller is told that it is not known.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// What every request shares.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) site: Site,
    pub(crate) token: Token,
    pub(crate) body_bytes_max: usize,
    /// Runs beside the worker, which stop with it.
    pub(crate) runs: BoundedRuns,
    /// One bounded run at a time.
    one_run: Arc<Semaphore>,
}

impl Api {
    pub(crate) fn new(site: Site, token: Token, body_bytes_max: usize, runs: BoundedRuns) -> Self {
        Self { site, token, body_bytes_max, runs, one_run: Arc::new(Semaphore::new(1)) }
    }

    fn permits(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (given.next(), given.next()) else { return false };
        match value.as_bytes().split_at_checked(7) {
            Some((scheme, token)) => scheme.eq_ignore_ascii_case(b"bearer ") && self.token.is(token),
            None => false,
        }
    }
}

/// All routes. Whoever has no token learns nothing, not even which routes there are.
pub(crate) fn router(api: Arc<Api>) -> Router {
    let router =
        Operation::ALL.iter().fold(Router::new(), |router, operation| router.route(operation.path(), handlers::of(*operation)));
    router
        .method_not_allowed_fallback(|request: Request| async move {
            let message = format!("{} is no method of {}", request.method(), request.uri().path());
            Fault::new(Code::MethodNotAllowed, message, "use one of those in the Allow header").into_response()
        })
        .fallback(|request: Request| async move {
            let message = format!("there is nothing under {}", request.uri().path());
            Fault::new(Code::UnknownRoute, message, "see `restante openapi` for what there is").into_response()
        })
        .layer(from_fn_with_state(Arc::clone(&api), authorize))
        .with_state(api)
}

async fn authorize(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let has_token = api.permits(request.headers());
    if has_token && let Some(known) = request.extensions().get::<Arc<Known>>() {
        known.note_token();
    }
    if has_token || request.uri().path() == Operation::Health.path() {
        return next.run(request).await;
    }
    let what_to_do = "send the header Authorization: Bearer TOKEN";
    let message =
        if request.headers().contains_key(AUTHORIZATION) { "the token is not the right one" } else { "there is no token" };
    let mut response = Fault::new(Code::Unauthorized, message, what_to_do).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

//! How answers are written.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::fault::{Code, Fault};
use crate::views::FaultView;

/// An answer with a JSON body.
pub(super) fn json(status: u16, view: &impl Serialize) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Views have only text for keys and no number that JSON lacks.
    let body = serde_json::to_vec(view).unwrap_or_default();
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static("application/json")), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, headers, body).into_response()
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        match self.code.status() {
            Some(status) => json(status, &FaultView::from(&self)),
            // Nothing that a request does ends in a fault of the command line.
            None => json(500, &FaultView::from(&Self { code: Code::Internal, ..self })),
        }
    }
}

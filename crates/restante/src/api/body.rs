//! How bodies and queries are read: within their bounds, and with a complaint that says where.

use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;

use super::BODY_TIME_MAX;
use crate::fault::{Code, Fault};

/// How much of a body that is too large is read all the same: a sender that is still writing would not see the answer.
const DRAINED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads a JSON body of at most `bytes_max` bytes.
pub(super) async fn json<T: DeserializeOwned>(request: Request, bytes_max: usize) -> Result<T, Fault> {
    let body = match tokio::time::timeout(BODY_TIME_MAX, read(request, bytes_max)).await {
        Ok(body) => body?,
        Err(_) => {
            let message = format!("the body did not arrive within {} s", BODY_TIME_MAX.as_secs());
            return Err(Fault::new(Code::RequestTimeout, message, "send it at once"));
        }
    };
    let wrong = |why: &dyn std::fmt::Display| {
        let message = format!("the body is not the JSON that is asked for: {why}");
        Fault::new(Code::InvalidJson, message, "see `restante openapi` for what is")
    };
    let read = serde_json::from_slice(&body).map_err(|error| wrong(&error))?;
    // An array is taken for an object whose fields stand in order.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(wrong(&"it is an array, and an object is needed"));
    }
    Ok(read)
}

async fn read(request: Request, bytes_max: usize) -> Result<Vec<u8>, Fault> {
    let too_large = || {
        let message = format!("the body is larger than {bytes_max} bytes");
        Fault::new(Code::BodyTooLarge, message, "send less, or start the server with a larger --body-bytes-max")
    };
    let drained_max = bytes_max.saturating_add(DRAINED_BYTES_MAX);
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > drained_max) {
        return Err(too_large());
    }
    let mut body = request.into_body();
    let (mut read, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Fault::new(Code::InvalidRequest, format!("the body broke off ({error})"), "send all of it"))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length <= bytes_max {
            read.extend_from_slice(&data);
        } else if length > drained_max {
            break;
        }
    }
    if length > bytes_max { Err(too_large()) } else { Ok(read) }
}

/// The parameters of a query, each at most once and none unknown.
pub(super) fn query<const N: usize>(request: &Request, names: [&str; N]) -> Result<[Option<String>; N], Fault> {
    let mut values = [const { None }; N];
    for (name, value) in url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
        let wrong = |what| Fault::new(Code::InvalidRequest, what, format!("known are: {}", names.join(", ")));
        let Some(index) = names.iter().position(|known| *known == name) else {
            return Err(wrong(format!("there is no parameter {name:?}")));
        };
        if values[index].replace(value.into_owned()).is_some() {
            return Err(wrong(format!("the parameter {name:?} is given twice")));
        }
    }
    Ok(values)
}

//! One HTTP request a connection, as plain as can be.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use restante::api::Operation;
use serde_json::Value;

use crate::bed::TOKEN;

/// Where to ask.
pub(crate) struct Client {
    pub(crate) address: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Client {
    /// Asks, and holds the status against what the operation declares.
    pub(crate) fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{authorization}Content-Length: {length}\r\n\r\n{body}",
            self.address
        );
        let answer = self.raw(request.as_bytes());
        if let Some(operation) = operation(method, path) {
            let declared = operation.statuses();
            assert!(declared.contains(&answer.status), "{operation:?} declares {declared:?}, not {answer:?}");
        }
        answer
    }

    /// Writes the head of a request with the right token.
    pub(crate) fn begin(&self, method: &str, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a bound");
        let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("the head is sent");
        stream
    }

    /// Writes these bytes and reads the answer.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a bound");
        stream.write_all(request).expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?} is no answer"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
    }
}

/// The operation whose path this is.
fn operation(method: &str, path: &str) -> Option<Operation> {
    let path = path.split('?').next().unwrap_or_default();
    let is_path_of = |operation: &Operation| {
        let (template, given): (Vec<_>, Vec<_>) = (operation.path().split('/').collect(), path.split('/').collect());
        template.len() == given.len() && template.iter().zip(given).all(|(part, given)| part.starts_with('{') || *part == given)
    };
    Operation::ALL.into_iter().find(|operation| operation.method() == method && is_path_of(operation))
}

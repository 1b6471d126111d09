//! Addresses that are not for the public are not connected to, however they are written and whatever leads to them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use restante_core::machine::{NotSent, PostResult};
use restante_http::{Builder, HttpSender};

use crate::receiver::{Receiver, Stub, answer, post_to};

const REFUSED: PostResult = PostResult::NotSent(NotSent::Refused);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn guarded() -> Builder {
    HttpSender::builder().allow_unsigned(true).allow_http(true)
}

#[tokio::test]
async fn literal_addresses_are_refused_in_every_form() {
    let receiver = Receiver::start(vec![answer("200 OK", "")]).await;
    let port = receiver.address.port();
    let sender = guarded().build().expect("a sender");
    for host in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "127.1",
        "100.64.0.1",
        "224.0.0.1",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        assert_eq!(sender.send(post_to(&format!("http://{host}:{port}/inbox"))).await, REFUSED, "{host}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused() {
    let receiver = Receiver::start(vec![answer("200 OK", "")]).await;
    let inbox = format!("http://social.example:{}/inbox", receiver.address.port());
    for found in [vec![LOOPBACK], vec![PRIVATE], vec![PRIVATE, LOOPBACK, "::ffff:10.0.0.1".parse().expect("an address")]] {
        let sender = guarded().resolver(Arc::new(Stub(found.clone()))).build().expect("a sender");
        assert_eq!(sender.send(post_to(&inbox)).await, REFUSED, "{found:?}");
    }
    // The system's own word for this machine.
    let sender = guarded().build().expect("a sender");
    assert_eq!(sender.send(post_to(&format!("http://localhost:{}/", receiver.address.port()))).await, REFUSED);
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn an_allowed_network_is_connected_to_and_nothing_else_of_the_same_name() {
    let receiver = Receiver::start(vec![answer("200 OK", "")]).await;
    let inbox = format!("http://social.example:{}/inbox", receiver.address.port());
    let sender = guarded()
        .resolver(Arc::new(Stub(vec![PRIVATE, LOOPBACK])))
        .allow_network("127.0.0.0/8".parse().expect("a network"))
        .build()
        .expect("a sender");
    assert_eq!(sender.send(post_to(&inbox)).await, PostResult::Status { code: 200, retry_after_ms: None });
    assert_eq!(receiver.requests()[0].header("host"), Some(format!("social.example:{}", receiver.address.port()).as_str()));
}

#[tokio::test]
async fn an_inbox_that_is_no_plain_https_url_is_refused() {
    let sender = HttpSender::builder().allow_unsigned(true).allow_private_addresses(true).build().expect("a sender");
    for inbox in ["http://social.example/", "ftp://social.example/", "https://u:p@social.example/", "social.example", ""] {
        assert_eq!(sender.send(post_to(inbox)).await, REFUSED, "{inbox}");
    }
}

//! HTTPS: HTTP/1 and 2, and handshakes that fail.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use restante_core::machine::{NotSent, PostResult};
use restante_http::HttpSender;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::receiver::{Act, BODY, Receiver, Seen, Stub, answer, post_to, serve};

const ROOT: &[u8] = include_bytes!("../tls/root.pem");
const CERTIFICATE: &[u8] = include_bytes!("../tls/receiver.pem");
const KEY: &[u8] = include_bytes!("../tls/receiver.key");
const ACCEPTED: PostResult = PostResult::Status { code: 202, retry_after_ms: None };

/// A listener and what turns its connections into TLS, offering one protocol.
async fn listen(protocol: &[u8]) -> (TcpListener, TlsAcceptor, u16) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair");
    config.alpn_protocols = vec![protocol.to_vec()];
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().map(|address: SocketAddr| address.port()).expect("a port");
    (listener, TlsAcceptor::from(Arc::new(config)), port)
}

fn sender(trusting: bool) -> HttpSender {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let builder = HttpSender::builder().allow_unsigned(true).allow_private_addresses(true).resolver(Arc::new(Stub(vec![here])));
    let builder = if trusting { builder.tls_roots_pem(ROOT) } else { builder };
    builder.build().expect("a sender")
}

async fn start_http1() -> u16 {
    let (listener, acceptor, port) = listen(b"http/1.1").await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = serve(stream, 0, &Seen::default(), &[answer("202 Accepted", "")]).await;
            }
        }
    });
    port
}

#[tokio::test]
async fn a_delivery_over_https_arrives() {
    let port = start_http1().await;
    assert_eq!(sender(true).send(post_to(&format!("https://receiver.test:{port}/inbox"))).await, ACCEPTED);
}

#[tokio::test]
async fn a_handshake_that_fails_was_not_sent() {
    let tls = PostResult::NotSent(NotSent::Tls);
    let port = start_http1().await;
    assert_eq!(sender(false).send(post_to(&format!("https://receiver.test:{port}/"))).await, tls, "an unknown issuer");
    assert_eq!(sender(true).send(post_to(&format!("https://other.test:{port}/"))).await, tls, "another name");
    let hangs_up = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = hangs_up.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = hangs_up.accept().await {
            let mut hello = [0; 16];
            let _ = tokio::io::AsyncReadExt::read_exact(&mut { stream }, &mut hello).await;
        }
    });
    let hung_up = sender(true).send(post_to(&format!("https://receiver.test:{port}/"))).await;
    // The end of the connection may reach the client as an end or as a reset.
    assert!(hung_up == tls || hung_up == PostResult::NotSent(NotSent::Connect), "{hung_up:?}");
}

#[tokio::test]
async fn a_receiver_that_does_not_speak_tls_was_not_sent_to() {
    // It takes the client's hello for the beginning of a head; its end is never read, so it answers by itself.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0; 16];
            let _ = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut hello).await;
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let result = sender(true).send(post_to(&format!("https://receiver.test:{port}/"))).await;
    assert_eq!(result, PostResult::NotSent(NotSent::Tls));
}

#[tokio::test]
async fn posts_over_http_2_share_a_connection() {
    let (listener, acceptor, port) = listen(b"h2").await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve_h2(stream));
        }
    });
    let sender = sender(true);
    let inbox = format!("https://receiver.test:{port}/inbox");
    for _ in 0..3 {
        assert_eq!(sender.send(post_to(&inbox)).await, ACCEPTED);
    }
    let (one, other) = tokio::join!(sender.send(post_to(&inbox)), sender.send(post_to(&inbox)));
    assert_eq!((one, other), (ACCEPTED, ACCEPTED));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

async fn serve_h2(stream: TlsStream<TcpStream>) {
    let mut connection = h2::server::handshake(stream).await.expect("a handshake");
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut read = Vec::new();
            while let Some(Ok(chunk)) = body.data().await {
                read.extend_from_slice(&chunk);
            }
            assert_eq!(read, BODY);
            let response = http::Response::builder().status(202).body(()).expect("a response");
            let _ = respond.send_response(response, true);
        });
    }
}

#[tokio::test]
async fn a_plain_receiver_is_not_taken_for_https() {
    let receiver = Receiver::start(vec![Act::Close]).await;
    let inbox = format!("https://receiver.test:{}/inbox", receiver.address.port());
    let mut post = post_to(&inbox);
    post.timeout_ms = 20_000;
    // The receiver waits for the end of a head that never comes: only the limit for connecting ends this.
    let sender = HttpSender::builder()
        .allow_unsigned(true)
        .allow_private_addresses(true)
        .resolver(Arc::new(Stub(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])))
        .connect_timeout(std::time::Duration::from_millis(300))
        .build()
        .expect("a sender");
    assert_eq!(sender.send(post).await, PostResult::NotSent(NotSent::Connect));
    assert!(receiver.requests().is_empty());
}

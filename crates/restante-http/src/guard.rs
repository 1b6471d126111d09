//! Which URLs and addresses a delivery may go to. Inbox URLs are named by strangers: without this, anybody could have requests
//! made inside the network that the sender runs in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;
use url::{Host, Url};

/// IPv4 networks that are not the public internet.
const CLOSED_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),       // this network, and "any address" as a destination
    v4([10, 0, 0, 0], 8),      // private
    v4([100, 64, 0, 0], 10),   // shared by carriers (CGNAT)
    v4([127, 0, 0, 0], 8),     // loopback
    v4([169, 254, 0, 0], 16),  // link-local, among it the metadata services of clouds
    v4([172, 16, 0, 0], 12),   // private
    v4([192, 0, 0, 0], 24),    // protocol assignments
    v4([192, 0, 2, 0], 24),    // documentation
    v4([192, 88, 99, 0], 24),  // relays of 6to4, withdrawn
    v4([192, 168, 0, 0], 16),  // private
    v4([198, 18, 0, 0], 15),   // benchmarks
    v4([198, 51, 100, 0], 24), // documentation
    v4([203, 0, 113, 0], 24),  // documentation
    v4([224, 0, 0, 0], 4),     // multicast
    v4([240, 0, 0, 0], 4),     // reserved, and broadcast
];

/// Of IPv6, only this block is public unicast; everything else is closed without being listed: loopback, unique local, link-local,
/// site-local, multicast, the local NAT64 prefix, discard, addresses that nobody has assigned.
const OPEN_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Networks inside [`OPEN_V6`] that are not the public internet.
const CLOSED_V6: [Ipv6Net; 3] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),     // protocol assignments, among them Teredo
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),     // documentation
];

/// IPv6 networks whose last four bytes are the IPv4 address that is meant: mapped, and NAT64.
const EMBED_LAST: [Ipv6Net; 2] = [v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96)];

/// 6to4: the IPv4 address stands behind the first two bytes.
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);

const fn v4(bytes: [u8; 4], bits: u8) -> Ipv4Net {
    let [a, b, c, d] = bytes;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(words: [u16; 8], bits: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = words;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits)
}

/// The rules of one sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    pub(crate) http_allowed: bool,
    pub(crate) private_allowed: bool,
    pub(crate) networks_allowed: Vec<IpNet>,
}

impl Guard {
    /// The URL of `inbox`, if a POST may go there as far as the URL tells: a name is judged when it is resolved.
    pub(crate) fn target(&self, inbox: &str) -> Result<Url, Refusal> {
        let mut url = Url::parse(inbox)?;
        match url.scheme() {
            "https" => {}
            "http" if self.http_allowed => {}
            other => return Err(Refusal::Scheme(other.to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Credentials);
        }
        // The parser has turned decimal, octal, hexadecimal and shortened forms of IPv4 addresses into addresses.
        match url.host() {
            Some(Host::Ipv4(address)) => self.judge(address.into())?,
            Some(Host::Ipv6(address)) => self.judge(address.into())?,
            Some(Host::Domain(_)) => {}
            None => return Err(Refusal::NoHost),
        }
        url.set_fragment(None);
        Ok(url)
    }

    fn judge(&self, address: IpAddr) -> Result<(), Refusal> {
        if self.allows(address) { Ok(()) } else { Err(Refusal::Address(address)) }
    }

    /// Whether a connection to `address` may be made.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let embedded = embedded_v4(address).map(IpAddr::V4);
        self.private_allowed
            || is_public(address)
            || self
                .networks_allowed
                .iter()
                .any(|network| network.contains(&address) || embedded.is_some_and(|embedded| network.contains(&embedded)))
    }
}

fn is_public(address: IpAddr) -> bool {
    match (address, embedded_v4(address)) {
        (IpAddr::V4(address), _) | (IpAddr::V6(_), Some(address)) => !CLOSED_V4.iter().any(|network| network.contains(&address)),
        (IpAddr::V6(address), None) => OPEN_V6.contains(&address) && !CLOSED_V6.iter().any(|network| network.contains(&address)),
    }
}

/// The IPv4 address that an IPv6 address stands for.
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let bytes = address.octets();
    if EMBED_LAST.iter().any(|network| network.contains(&address)) {
        return Some(Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]));
    }
    SIX_TO_FOUR.contains(&address).then(|| Ipv4Addr::new(bytes[2], bytes[3], bytes[4], bytes[5]))
}

/// Why nothing is sent to an inbox.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum Refusal {
    #[error("the inbox is no URL: {0}")]
    NotAUrl(#[from] url::ParseError),
    #[error("the inbox has the scheme {0}, and only https is sent to (http where it is allowed)")]
    Scheme(String),
    #[error("the inbox has credentials in it")]
    Credentials,
    #[error("the inbox has no host")]
    NoHost,
    #[error("{0} is not a public address, and not in an allowed network")]
    Address(IpAddr),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn guard() -> Guard {
        Guard { http_allowed: true, ..Guard::default() }
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_form() {
        for host in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            // The same loopback and private addresses, written otherwise.
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "127.1",
            "017700000001",
            "10.1",
            "0xa.0.0.1",
            "0",
            "１２７.０.０.１",
            "[::]",
            "[::1]",
            "[::127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:a9fe:a9fe]",
            "[64:ff9b::10.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b:1::1]",
            "[2002:0a00:0001::1]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[100::1]",
            "[5f00::1]",
        ] {
            let refused = guard().target(&format!("http://{host}:8080/inbox"));
            assert!(matches!(refused, Err(Refusal::Address(_))), "{host}: {refused:?}");
        }
    }

    #[test]
    fn public_addresses_and_names_pass() {
        for host in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "[2606:4700::1111]",
            "[2a00:1450::1]",
            "[::ffff:1.1.1.1]",
            "[64:ff9b::1.1.1.1]",
            "[2002:101:101::1]",
            "[2001:200::1]",
            "social.example",
            "bücher.example",
            "localhost",
        ] {
            let passed = guard().target(&format!("http://{host}/inbox"));
            assert!(passed.is_ok(), "{host}: {passed:?}");
        }
    }

    #[test]
    fn allowed_networks_open_what_they_name_and_no_more() {
        let guard = Guard { networks_allowed: vec!["10.1.0.0/16".parse().expect("a network")], ..guard() };
        for (host, allowed) in [("10.1.2.3", true), ("10.2.0.1", false), ("[::ffff:10.1.0.1]", true), ("[::1]", false)] {
            assert_eq!(guard.target(&format!("http://{host}/")).is_ok(), allowed, "{host}");
        }
    }

    #[test]
    fn only_plain_https_urls_are_sent_to() {
        let guard = Guard::default();
        assert!(matches!(guard.target("http://social.example/"), Err(Refusal::Scheme(_))));
        assert!(matches!(guard.target("file:///etc/passwd"), Err(Refusal::Scheme(_))));
        assert!(matches!(guard.target("https://user@social.example/"), Err(Refusal::Credentials)));
        assert!(matches!(guard.target("inbox"), Err(Refusal::NotAUrl(_))));
        assert_eq!(guard.target("https://Social.example/a#b").expect("a URL").as_str(), "https://social.example/a");
    }

    proptest! {
        #[test]
        fn an_embedded_address_is_judged_like_itself(bytes: [u8; 4]) {
            let [a, b, c, d] = bytes;
            let plain = is_public(IpAddr::from(bytes));
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let mapped = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low);
            let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            let six_to_four = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1);
            for address in [mapped, nat64, six_to_four] {
                prop_assert_eq!(is_public(address.into()), plain, "{}", address);
            }
        }

        #[test]
        fn any_text_is_judged_without_a_panic(text in ".{0,60}") {
            let _ = guard().target(&text);
        }
    }
}

//! Signed requests before a verifier that shares nothing with the signer: another language, other libraries.

mod independent;
mod verifier;

//! Permission to send and to receive a trace. A token is never sent: each side asks for a proof of
//! it over fresh nonces of both.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// A secret that sender and receiver share. Empty where the system identifies the other end of a
/// Unix socket.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// A larger file is a mistake: the wrong file, say.
const MOST_BYTES: usize = 1024;

impl Token {
    /// A token as typed or read from a file; white space around it does not count.
    pub fn new(text: &[u8]) -> Result<Token, &'static str> {
        match text.trim_ascii() {
            [] => Err("the token is empty"),
            long if long.len() > MOST_BYTES => Err("the token is longer than 1024 bytes: is it a token?"),
            token => Ok(Token(token.to_vec())),
        }
    }

    /// No secret.
    pub fn none() -> Token {
        Token(Vec::new())
    }

    /// A fresh one: 256 random bits in hexadecimal.
    pub fn generate() -> std::io::Result<Token> {
        let text: String = nonce()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Token(text.into_bytes()))
    }

    /// The token, for its owner's eyes.
    pub fn reveal(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    pub(crate) fn proof(&self, side: Side, nonces: &Nonces) -> [u8; 32] {
        self.mac(side, nonces).finalize().into_bytes().into()
    }

    /// Takes as long for a wrong proof as for the right one.
    pub(crate) fn accepts(&self, side: Side, nonces: &Nonces, proof: &[u8]) -> bool {
        self.mac(side, nonces).verify_slice(proof).is_ok()
    }

    fn mac(&self, side: Side, nonces: &Nonces) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(side.name());
        mac.update(&nonces.receiver);
        mac.update(&nonces.sender);
        mac
    }
}

/// The side that proves: a proof of one side is invalid for the other, which might send it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl Side {
    fn name(self) -> &'static [u8] {
        match self {
            Side::Sender => b"sender",
            Side::Receiver => b"receiver",
        }
    }
}

/// Nonces of both sides: an old proof is no good for either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonces {
    pub receiver: [u8; 32],
    pub sender: [u8; 32],
}

/// 32 random bytes.
pub(crate) fn nonce() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let length = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    if length == bytes.len() { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_token_one_side_and_both_nonces() {
        let token = Token::new(b" secret\n").unwrap();
        let nonces = Nonces { receiver: [1; 32], sender: [2; 32] };
        let proof = token.proof(Side::Sender, &nonces);
        assert!(Token::new(b"secret").unwrap().accepts(Side::Sender, &nonces, &proof));
        assert!(!token.accepts(Side::Receiver, &nonces, &proof));
        for other in [
            Nonces { receiver: [3; 32], ..nonces },
            Nonces { sender: [3; 32], ..nonces },
            Nonces { receiver: nonces.sender, sender: nonces.receiver },
        ] {
            assert!(!token.accepts(Side::Sender, &other, &proof));
        }
        assert!(!token.accepts(Side::Sender, &nonces, &proof[..31]));
        assert!(!Token::new(b"secreT").unwrap().accepts(Side::Sender, &nonces, &proof));
        assert!(!Token::none().accepts(Side::Sender, &nonces, &proof));
    }

    #[test]
    fn fresh_tokens_differ() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), 64);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        assert!(Token::new(b" \n").is_err());
        assert!(Token::new(&[b'x'; 2000]).is_err());
    }
}

//! What is wrong with a PEM file, in words: the mistakes that people make with certificates and keys, each
//! with its remedy. Asked when a file cannot be read as what it should be; decides nothing.

/// Characters of a line that a message shows.
const SHOWN: usize = 60;

/// What a file should hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// One certificate or several.
    Certificate,
    /// The private key of a certificate.
    PrivateKey,
    /// Lists of revoked certificates.
    RevocationList,
}

impl Wanted {
    fn is(self, label: &str) -> bool {
        match self {
            Wanted::Certificate => label == "CERTIFICATE",
            Wanted::PrivateKey => label.ends_with("PRIVATE KEY") && !is_foreign_key(label),
            Wanted::RevocationList => label == "X509 CRL",
        }
    }

    /// What its section is called.
    pub fn label(self) -> &'static str {
        match self {
            Wanted::Certificate => "CERTIFICATE",
            Wanted::PrivateKey => "PRIVATE KEY",
            Wanted::RevocationList => "X509 CRL",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Wanted::Certificate => "certificate",
            Wanted::PrivateKey => "private key",
            Wanted::RevocationList => "list of revoked certificates",
        }
    }

    /// The command of OpenSSL that reads it.
    fn command(self) -> &'static str {
        match self {
            Wanted::Certificate => "openssl x509",
            Wanted::PrivateKey => "openssl pkey",
            Wanted::RevocationList => "openssl crl",
        }
    }
}

/// One section: from its BEGIN line on.
struct Section<'a> {
    label: &'a str,
    /// Where it begins, from 1.
    line: usize,
    /// Characters of base64.
    characters: usize,
    /// Whether its key is protected by a passphrase, as OpenSSL wrote it before there was a label for it.
    is_encrypted: bool,
}

/// Why these bytes do not hold what is wanted, and what to do, as the rest of a sentence about the file.
/// `None`: none of the usual mistakes.
pub fn pem_fault(contents: &[u8], wanted: Wanted) -> Option<String> {
    if contents.iter().all(u8::is_ascii_whitespace) {
        return Some(format!("is empty; a {} in PEM belongs there", wanted.name()));
    }
    if let Some(fault) = other_encoding(contents, wanted) {
        return Some(fault);
    }
    let text = String::from_utf8_lossy(contents);
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut is_open = false;
    for (line, number) in text.split('\n').flat_map(|line| line.split('\r')).zip(1..) {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("-----BEGIN ") {
            if is_open && let Some(before) = sections.last() {
                return Some(format!(
                    "has another section (line {number}) before the one of line {} has ended: its \
                     `-----END {}-----` is missing; copy the file again",
                    before.line, before.label
                ));
            }
            let Some(label) = rest.strip_suffix("-----").filter(|label| !label.ends_with('-'))
            else {
                return Some(dashes(number, trimmed, wanted));
            };
            if line.starts_with(char::is_whitespace) {
                return Some(format!(
                    "has spaces before `-----BEGIN` in line {number}; remove them from the \
                     beginnings of all lines"
                ));
            }
            sections.push(Section { label, line: number, characters: 0, is_encrypted: false });
            is_open = true;
        } else if let Some(rest) = trimmed.strip_prefix("-----END ") {
            if let Some(fault) = ended(rest, number, sections.last().filter(|_| is_open), wanted) {
                return Some(fault);
            }
            is_open = false;
        } else if let Some(section) = sections.last_mut().filter(|_| is_open) {
            if let Some(fault) = inside(trimmed, number, section, wanted) {
                return Some(fault);
            }
        } else if trimmed.contains("BEGIN ") && trimmed.contains("--") {
            return Some(dashes(number, trimmed, wanted));
        }
    }
    if is_open && let Some(open) = sections.last() {
        return Some(format!(
            "ends in the middle of the section that begins in line {}: `-----END {}-----` is missing; \
             the file is truncated, copy it again",
            open.line, open.label
        ));
    }
    content(&sections, &text, wanted)
}

/// Bytes that are not the text of PEM.
fn other_encoding(contents: &[u8], wanted: Wanted) -> Option<String> {
    match contents {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(
            "is text in UTF-16, as editors and PowerShell on Windows write it; convert it: \
             `iconv -f UTF-16 -t ASCII`"
                .into(),
        ),
        [0xef, 0xbb, 0xbf, ..] => Some(
            "begins with a byte order mark (BOM), which editors on Windows put there; remove it: \
             `sed -i '1s/^\\xEF\\xBB\\xBF//'`"
                .into(),
        ),
        [0x30, length, rest @ ..] if *length >= 0x80 => {
            let version = rest.get(usize::from(length & 0x7f)..)?;
            // PKCS #12 begins with its version; what is wanted here never begins with a 3.
            Some(match version.starts_with(&[0x02, 0x01, 0x03]) {
                true => format!(
                    "is PKCS #12 (.p12, .pfx), not PEM; take the {} out: `openssl pkcs12 -in FILE {}`",
                    wanted.name(),
                    match wanted {
                        Wanted::PrivateKey => "-nocerts -noenc",
                        _ => "-nokeys",
                    }
                ),
                false => format!(
                    "is binary (DER), not PEM; convert it: `{} -inform DER -in FILE -out FILE.pem`",
                    wanted.command()
                ),
            })
        }
        _ => None,
    }
}

/// An END line.
fn ended(rest: &str, number: usize, open: Option<&Section<'_>>, wanted: Wanted) -> Option<String> {
    let label = rest.trim_end_matches('-');
    let Some(open) = open else {
        return Some(format!(
            "has `-----END {label}-----` in line {number} without its `-----BEGIN {label}-----`; the \
             beginning is missing, copy the file again"
        ));
    };
    if label != open.label {
        return Some(format!(
            "ends a section as `{label}` in line {number} that began as `{}` in line {}; copy the \
             file again",
            open.label, open.line
        ));
    }
    // Of the base64 of a key with a passphrase nothing is known before it is decrypted.
    (wanted.is(label) && !open.is_encrypted && open.characters % 4 != 0).then(|| {
        format!(
            "has a section in lines {} to {number} whose base64 has {} characters, which is not a \
             multiple of four: some are missing; copy the file again",
            open.line, open.characters
        )
    })
}

/// A line of a section.
fn inside(line: &str, number: usize, section: &mut Section<'_>, wanted: Wanted) -> Option<String> {
    if line.contains(": ") {
        section.is_encrypted |= line.contains("ENCRYPTED");
        return None;
    }
    if !wanted.is(section.label) || section.is_encrypted {
        return None;
    }
    let is_base64 = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=' | ' ' | '\t')
    };
    if let Some(odd) = line.chars().find(|character| !is_base64(*character)) {
        // Never more of a line: it may belong to a key.
        return Some(format!(
            "has {odd:?} in line {number}, which base64 does not have; the file is damaged, copy it \
             again"
        ));
    }
    section.characters += line.chars().filter(|character| !character.is_whitespace()).count();
    None
}

fn dashes(number: usize, line: &str, wanted: Wanted) -> String {
    let shown: String = line.chars().take(SHOWN).collect();
    format!(
        "has `{shown}` in line {number}; a section begins with five dashes on either side: \
         `-----BEGIN {}-----`",
        wanted.label()
    )
}

/// Whether what is wanted is there, in sections that are whole.
fn content(sections: &[Section<'_>], text: &str, wanted: Wanted) -> Option<String> {
    if wanted == Wanted::PrivateKey
        && let Some(key) = sections.iter().find(|one| one.label.ends_with("PRIVATE KEY"))
        && (key.is_encrypted || key.label == "ENCRYPTED PRIVATE KEY")
    {
        return Some(
            "holds a private key that is protected by a passphrase, which nobody could be asked for; \
             store it without (`openssl pkey -in FILE -out FILE.key`), with mode 600"
                .into(),
        );
    }
    if sections.iter().any(|section| wanted.is(section.label)) {
        return None;
    }
    let Some(first) = sections.first() else {
        let looks_bare = text.trim_start().starts_with("MII");
        let (begin, end) = (wanted.label(), wanted.label());
        return Some(match looks_bare {
            true => format!(
                "holds base64 without the lines around it: `-----BEGIN {begin}-----` belongs before \
                 and `-----END {end}-----` behind it"
            ),
            false => format!(
                "is not PEM: it has no line `-----BEGIN {begin}-----`; is that the right file?"
            ),
        });
    };
    let exchanged = "have `chain` and `key` been exchanged?";
    let wanted_name = wanted.name();
    Some(match (first.label, wanted) {
        (label, Wanted::Certificate)
            if label.ends_with("PRIVATE KEY") && !is_foreign_key(label) =>
        {
            format!("holds a private key and no certificate; {exchanged}")
        }
        ("CERTIFICATE", Wanted::PrivateKey) => {
            format!("holds a certificate and no private key; {exchanged}")
        }
        ("CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST", _) => format!(
            "holds a request for a certificate (CSR), not a {wanted_name}; an authority answers it with \
             a certificate"
        ),
        ("OPENSSH PRIVATE KEY", _) => {
            format!(
                "holds a key of SSH, not a {wanted_name}; TLS needs another one (`openssl genpkey`)"
            )
        }
        ("PUBLIC KEY" | "RSA PUBLIC KEY", _) => {
            format!("holds a public key, not a {wanted_name}")
        }
        ("TRUSTED CERTIFICATE", Wanted::Certificate) => {
            "holds OpenSSL's own form of a certificate; convert it: `openssl x509 -in FILE -out \
             FILE.pem`"
                .into()
        }
        ("PKCS7", _) => format!(
            "is PKCS #7, not a {wanted_name}; take the certificates out: `openssl pkcs7 -print_certs \
             -in FILE`"
        ),
        (label, _) => {
            let label: String = label.chars().take(SHOWN).collect();
            format!("holds `{label}` and no {wanted_name}")
        }
    })
}

/// Keys that TLS has no use for.
fn is_foreign_key(label: &str) -> bool {
    matches!(label, "OPENSSH PRIVATE KEY" | "DSA PRIVATE KEY")
}

#[cfg(test)]
mod tests {
    use super::{Wanted, pem_fault};

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n";

    #[track_caller]
    fn says(contents: impl AsRef<[u8]>, wanted: Wanted, expected: &[&str]) {
        let said = pem_fault(contents.as_ref(), wanted).expect("a fault");
        expected.iter().for_each(|text| assert!(said.contains(text), "{text:?} is not in: {said}"));
    }

    #[test]
    fn what_is_whole_has_no_fault_whatever_stands_beside_it() {
        let both = format!("text before\n{KEY}{CERTIFICATE}# and behind\n");
        for wanted in [Wanted::Certificate, Wanted::PrivateKey] {
            assert_eq!(pem_fault(both.as_bytes(), wanted), None);
            assert_eq!(pem_fault(both.replace('\n', "\r\n").as_bytes(), wanted), None);
        }
    }

    #[test]
    fn files_of_another_kind_are_told_by_what_they_are() {
        use Wanted::{Certificate, PrivateKey, RevocationList};
        says("", Certificate, &["is empty"]);
        says(" \n", PrivateKey, &["is empty"]);
        says(b"\xff\xfe-\0-\0", Certificate, &["UTF-16", "iconv"]);
        says(format!("\u{feff}{CERTIFICATE}"), Certificate, &["byte order mark", "sed"]);
        says(b"\x30\x82\x01\x00\x30\x82", Certificate, &["DER", "openssl x509 -inform DER"]);
        says(b"\x30\x82\x01\x00\x02\x01\x00", PrivateKey, &["openssl pkey -inform DER"]);
        says(b"\x30\x82\x01\x00\x02\x01\x03", PrivateKey, &["PKCS #12", "-nocerts"]);
        says(CERTIFICATE, PrivateKey, &["certificate and no private key", "exchanged"]);
        says(KEY, Certificate, &["private key and no certificate", "exchanged"]);
        says(KEY, RevocationList, &["no list of revoked certificates"]);
        says(KEY.replace("PRIVATE", "PUBLIC"), PrivateKey, &["public key"]);
        says(KEY.replace("PRIVATE", "OPENSSH PRIVATE"), PrivateKey, &["SSH"]);
        says(KEY.replace("PRIVATE KEY", "CERTIFICATE REQUEST"), Certificate, &["request"]);
        says("MIIBIjANBgkq\n", Certificate, &["without the lines around it", "-----BEGIN"]);
        says("<html>not found</html>", Certificate, &["is not PEM", "right file"]);
    }

    #[test]
    fn keys_with_a_passphrase_are_told_in_either_form() {
        let new = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE");
        let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nTUlJQg=\n\
                   -----END RSA PRIVATE KEY-----\n";
        says(new, Wanted::PrivateKey, &["passphrase", "openssl pkey"]);
        says(old, Wanted::PrivateKey, &["passphrase"]);
    }

    #[test]
    fn every_damage_of_one_byte_is_survived() {
        let whole = format!("{KEY}{CERTIFICATE}");
        for wanted in [Wanted::Certificate, Wanted::PrivateKey, Wanted::RevocationList] {
            for place in 0..whole.len() {
                pem_fault(&whole.as_bytes()[..place], wanted);
                pem_fault(&whole.as_bytes()[place..], wanted);
                for byte in [0, b'\n', b'-', b' ', 0x30, 0x84, 0xff] {
                    let mut damaged = whole.clone().into_bytes();
                    damaged[place] = byte;
                    pem_fault(&damaged, wanted);
                }
            }
        }
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let wanted = Wanted::Certificate;
        let cut = CERTIFICATE.replace("-----END CERTIFICATE-----\n", "");
        says(&cut, wanted, &["line 1", "`-----END CERTIFICATE-----` is missing", "truncated"]);
        says(format!("{cut}{CERTIFICATE}"), wanted, &["line 3", "line 1", "is missing"]);
        says(&CERTIFICATE[28..], wanted, &["line 2", "without its `-----BEGIN"]);
        says(CERTIFICATE.replace("END CERT", "END PRIVATE CERT"), wanted, &["line 3", "began as"]);
        says(CERTIFICATE.replace("Qg==", "Qg="), wanted, &["7 characters", "multiple of four"]);
        says(CERTIFICATE.replace("Qg==", "Q*=="), wanted, &["'*'", "line 2"]);
        says(CERTIFICATE.replace("-----BEGIN", "----BEGIN"), wanted, &["line 1", "five dashes"]);
        says(CERTIFICATE.replace("E-----\nTU", "E----\nTU"), wanted, &["line 1", "five dashes"]);
        says(CERTIFICATE.replace("-----BEGIN", "  -----BEGIN"), wanted, &["spaces before"]);
    }
}

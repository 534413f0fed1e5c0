//! The same pool as three balancers write it.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Which program balances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// This one.
    Subak,
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
}

impl Kind {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Subak => "Subak",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "HAProxy",
        }
    }

    /// As a part of a cell's name.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Subak => "subak",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "haproxy",
        }
    }

    /// How it is told of an algorithm of the catalogue; none where it has nothing of the kind.
    pub fn word(self, algorithm: &str) -> Option<String> {
        let word = match (self, algorithm) {
            (Kind::Subak, "five_tuple_hash") => "{ algorithm = \"hash\", key = \"five_tuple\" }",
            (Kind::Subak, name) => return Some(format!("\"{name}\"")),
            // nginx balances in turn where nothing is said.
            (Kind::Nginx, "round_robin") => "",
            (Kind::Nginx, "least_connections") => "least_conn;",
            (Kind::Nginx, "ip_hash") => "ip_hash;",
            (Kind::Nginx, "five_tuple_hash") => {
                "hash $remote_addr$remote_port$server_addr$server_port;"
            }
            (Kind::Haproxy, "round_robin") => "roundrobin",
            (Kind::Haproxy, "least_connections") => "leastconn",
            (Kind::Haproxy, "ip_hash") => "source",
            // Of the five only the port differs between connections of one client.
            (Kind::Haproxy, "five_tuple_hash") => "hash src_port",
            _ => return None,
        };
        Some(word.to_owned())
    }
}

/// A server of the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its weight.
    pub weight: u32,
}

/// What a balancer is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who does it.
    pub kind: Kind,
    /// Where it listens.
    pub listen: SocketAddr,
    /// An algorithm by its name in the catalogue, or `five_tuple_hash`.
    pub algorithm: String,
    /// The servers.
    pub members: Vec<Member>,
    /// The proxy before it whose X-Forwarded-For is believed; none: nobody's.
    pub trusts: Option<IpAddr>,
    /// Whether clients speak TLS to it.
    pub tls: bool,
    /// Whether connections are balanced, and not requests: HAProxy's TCP mode.
    pub layer_4: bool,
}

impl Plan {
    /// The configuration, with files and the Admin API's socket in `directory`; none where the
    /// program has no such algorithm.
    pub fn text(&self, directory: &Path) -> Option<String> {
        let word = self.kind.word(&self.algorithm)?;
        Some(match self.kind {
            Kind::Subak => self.subak(&word, directory),
            Kind::Nginx => self.nginx(&word, directory),
            Kind::Haproxy => self.haproxy(&word, directory),
        })
    }

    fn subak(&self, word: &str, directory: &Path) -> String {
        let directory = directory.display();
        let endpoint = |member: &Member| {
            format!("{{ address = \"{}\", weight = {} }}", member.address, member.weight)
        };
        let endpoints: Vec<String> = self.members.iter().map(endpoint).collect();
        let mut text = format!(
            "admin = {{ socket = \"{directory}/admin.sock\" }}\n\
             shutdown_timeout = \"1s\"\n\n\
             [listener.web]\n\
             bind = \"{}\"\n\
             pool = \"app\"\n",
            self.listen,
        );
        if let Some(proxy) = self.trusts {
            text += &format!("trusted_proxies = [\"{proxy}\"]\n");
        }
        if self.tls {
            text += &format!(
                "tls = {{ certificates = [{{ chain = \"{directory}/chain.pem\", \
                 key = \"{directory}/key.pem\" }}] }}\n"
            );
        }
        text + &format!(
            "\n[pool.app]\nbalance = {word}\nendpoints = [\n  {},\n]\n",
            endpoints.join(",\n  ")
        )
    }

    fn nginx(&self, word: &str, directory: &Path) -> String {
        let directory = directory.display();
        let mut servers = String::new();
        for Member { address, weight } in &self.members {
            // Writing to a String cannot fail.
            let _ = writeln!(servers, "        server {address} weight={weight};");
        }
        let (tls, certificate) = match self.tls {
            false => ("", String::new()),
            true => (
                " ssl",
                format!(
                    "        ssl_certificate {directory}/chain.pem;\n        \
                     ssl_certificate_key {directory}/key.pem;\n"
                ),
            ),
        };
        let trusts = self.trusts.map_or_else(String::new, |proxy| {
            format!("        set_real_ip_from {proxy};\n        real_ip_header X-Forwarded-For;\n")
        });
        format!(
            "{}daemon off;\n\
             worker_processes 1;\n\
             pid {directory}/balancer.pid;\n\
             error_log stderr error;\n\
             events {{ worker_connections 24000; }}\n\
             http {{\n    access_log off;\n{}    \
             upstream backend {{\n        {word}\n{servers}    }}\n    \
             server {{\n        listen {}{tls};\n{certificate}{trusts}        \
             location / {{ proxy_pass http://backend; }}\n    }}\n}}\n",
            nginx_user(),
            nginx_paths(&directory),
            self.listen,
        )
    }

    fn haproxy(&self, word: &str, directory: &Path) -> String {
        let directory = directory.display();
        let mut servers = String::new();
        for (index, Member { address, weight }) in self.members.iter().enumerate() {
            let _ = writeln!(servers, "    server s{} {address} weight {weight}", index + 1);
        }
        let mode = if self.layer_4 { "tcp" } else { "http" };
        let tls = match self.tls {
            true => format!(" ssl crt {directory}/both.pem"),
            false => String::new(),
        };
        let trusts = self.trusts.map_or_else(String::new, |proxy| {
            format!("    http-request set-src req.hdr_ip(x-forwarded-for) if {{ src {proxy} }}\n")
        });
        format!(
            "global\n    nbthread 1\n    maxconn 16000\n    no strict-limits\n\n\
             defaults\n    mode {mode}\n    timeout connect 5s\n    timeout client 60s\n    \
             timeout server 60s\n\n\
             frontend web\n    bind {}{tls}\n{trusts}    default_backend app\n\n\
             backend app\n    balance {word}\n{servers}",
            self.listen,
        )
    }
}

/// nginx started by root changes its workers to an account that may not read this run's files.
pub(super) fn nginx_user() -> &'static str {
    if subak_lab::process::is_root() { "user root;\n" } else { "" }
}

/// Where nginx keeps what does not fit its buffers.
pub(super) fn nginx_paths(directory: impl std::fmt::Display) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let lines = kinds.map(|kind| format!("    {kind}_temp_path {directory}/nginx-{kind};\n"));
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Member, Plan};
    use std::path::Path;

    fn plan(kind: Kind, algorithm: &str) -> Plan {
        let members = [2, 3, 4].map(|host| Member {
            address: format!("[2345::{host}]:80").parse().unwrap(),
            weight: if host == 2 { 2 } else { 1 },
        });
        Plan {
            kind,
            listen: "[2345::5]:80".parse().unwrap(),
            algorithm: algorithm.to_owned(),
            members: members.to_vec(),
            trusts: None,
            tls: false,
            layer_4: kind == Kind::Haproxy,
        }
    }

    #[test]
    fn nginx_gets_the_lines_of_the_papers_figure() {
        let text = plan(Kind::Nginx, "round_robin").text(Path::new("d")).unwrap();
        for line in [
            "server [2345::2]:80 weight=2;",
            "server [2345::3]:80 weight=1;",
            "listen [2345::5]:80;",
            "proxy_pass http://backend;",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn each_is_told_in_its_words_whose_x_forwarded_for_to_believe() {
        for (kind, said) in [
            (Kind::Subak, "trusted_proxies = [\"192.0.2.9\"]"),
            (Kind::Nginx, "set_real_ip_from 192.0.2.9;\n        real_ip_header X-Forwarded-For;"),
            (Kind::Haproxy, "set-src req.hdr_ip(x-forwarded-for) if { src 192.0.2.9 }"),
        ] {
            let nobody = plan(kind, "round_robin");
            let trusting = Plan { trusts: "192.0.2.9".parse().ok(), ..nobody.clone() };
            let text = |plan: &Plan| plan.text(Path::new("d")).unwrap();
            assert!(text(&trusting).contains(said), "{}", text(&trusting));
            assert!(!text(&nobody).contains(said), "{}", text(&nobody));
        }
    }

    #[test]
    fn who_has_no_such_algorithm_gets_no_configuration() {
        assert_eq!(plan(Kind::Nginx, "least_packets").text(Path::new("d")), None);
        assert_eq!(plan(Kind::Haproxy, "new_hash").text(Path::new("d")), None);
        let text = plan(Kind::Haproxy, "five_tuple_hash").text(Path::new("d")).unwrap();
        assert!(text.contains("mode tcp") && text.contains("balance hash src_port"), "{text}");
        let text = plan(Kind::Subak, "least_packets").text(Path::new("d")).unwrap();
        assert!(text.contains("balance = \"least_packets\""), "{text}");
    }
}

//! Servers as a machine's own configuration names them.

use subak_names::resolv_conf;

#[test]
fn servers_are_those_of_the_file_at_port_53() {
    let path = std::env::temp_dir().join(format!("subak-resolv-{}.conf", std::process::id()));
    let text = "# made by hand\nsearch example.com\nnameserver 10.0.0.53\nnameserver 2001:db8::53\n\
                options ndots:5 timeout:1\n";
    std::fs::write(&path, text).expect("write");
    let servers = resolv_conf(&path).expect("servers");
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.0.0.53:53", "[2001:db8::53]:53"]);
    std::fs::write(&path, "search example.com\n").expect("write");
    assert!(resolv_conf(&path).is_err(), "a file without servers is said to be one");
    std::fs::remove_file(&path).expect("remove");
    let why = resolv_conf(&path).expect_err("no file");
    assert!(why.contains("cannot be read"), "{why}");
}

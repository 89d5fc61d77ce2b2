//! The command line against the original's rules.

use std::os::unix::ffi::OsStringExt;

use super::*;

fn parse_words(words: &[&str]) -> Parsed {
    let program = std::iter::once("beanstalkd");
    parse(program.chain(words.iter().copied()).map(OsString::from))
}

/// The configuration before it is judged whether all of it goes together.
fn config(words: &[&str]) -> Config {
    let mut reader = Reader::new("beanstalkd");
    let action = reader.read_flags(words.iter().map(OsString::from));
    assert_eq!(action, Ok(None), "{words:?}");
    reader.config
}

/// The first line of a refusal with status 5, without the program's name.
fn refusal(words: &[&str]) -> String {
    match parse_words(words).action {
        Action::Print {
            text,
            stream: Output::Stderr,
            status: 5,
        } => {
            let (line, rest) = text.split_once('\n').unwrap();
            assert!(rest.is_empty() || rest == help("beanstalkd"));
            line.strip_prefix("beanstalkd: ").unwrap().to_owned()
        }
        other => panic!("{words:?}: {other:?}"),
    }
}

fn printed(words: &[&str]) -> (String, Output) {
    match parse_words(words).action {
        Action::Print {
            text,
            stream,
            status: 0,
        } => (text, stream),
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn opt_none() {
    let parsed = parse_words(&[]);
    assert_eq!(parsed.program, "beanstalkd");
    assert_eq!(parsed.warnings, []);
    let expected = Config {
        mode: Mode::Legacy,
        listen: ListenSpec::default(),
        user: None,
        body_len_max: 65_535,
        binlog_dir: None,
        binlog_file_len: 10_485_760,
        binlog_sync: SyncPolicy::EveryMs(50),
        verbose: 0,
        sharding: Sharding {
            owners: None,
            frontends: None,
            owner_wait_ms: 1000,
            rejects_multi_watch: false,
            skips_damage: false,
        },
    };
    assert_eq!(parsed.action, Action::Run(expected));
}

#[test]
fn optminus() {
    assert_eq!(refusal(&["-"]), "unknown argument: -");
}

#[test]
fn optp() {
    assert_eq!(config(&["-p1234"]).listen.port, Some("1234".into()));
}

#[test]
fn optl() {
    let listen = config(&["-llocalhost"]).listen;
    assert_eq!(listen.address, Some("localhost".into()));
}

#[test]
fn optlseparate() {
    let listen = config(&["-l", "localhost"]).listen;
    assert_eq!(listen.address, Some("localhost".into()));
}

#[test]
fn optz() {
    assert_eq!(config(&["-z1234"]).body_len_max, 1234);
    assert_eq!(config(&["-z0"]).body_len_max, 0);
}

#[test]
fn optz_more_than_max() {
    for asked in [1_073_741_825, u64::MAX] {
        let word = format!("-z{asked}");
        assert_eq!(config(&[&word]).body_len_max, 1_073_741_824);
        let warnings = parse_words(&[&word]).warnings;
        assert_eq!(warnings, [Warning::BodyLenLowered { asked }]);
    }
    assert_eq!(parse_words(&["-z1073741824"]).warnings, []);
}

#[test]
fn opts() {
    assert_eq!(config(&["-s1234"]).binlog_file_len, 1234);
}

#[test]
fn optf() {
    assert_eq!(config(&["-f1234"]).binlog_sync, SyncPolicy::EveryMs(1234));
}

#[test]
fn opt_no_sync() {
    // `optF` of the original.
    assert_eq!(config(&["-f1234", "-F"]).binlog_sync, SyncPolicy::Never);
    assert_eq!(config(&["-F", "-f0"]).binlog_sync, SyncPolicy::EveryMs(0));
}

#[test]
fn optu() {
    assert_eq!(config(&["-ukr"]).user, Some("kr".into()));
}

#[test]
fn optb() {
    assert_eq!(config(&["-bfoo"]).binlog_dir, Some("foo".into()));
    assert_eq!(printed(&["-bfoo", "-v"]).1, Output::Stdout);
}

#[test]
fn opt_verbose() {
    // `optV`, `optV_V` and `optVVV` of the original.
    assert_eq!(config(&["-V"]).verbose, 1);
    assert_eq!(config(&["-V", "-V"]).verbose, 2);
    assert_eq!(config(&["-VVV"]).verbose, 3);
}

#[test]
fn opt_bundle() {
    // `optVFVu` of the original.
    let config = config(&["-VFVukr"]);
    assert_eq!((config.verbose, config.binlog_sync), (2, SyncPolicy::Never));
    assert_eq!(config.user, Some("kr".into()));
}

#[test]
fn the_later_flag_wins() {
    let config = config(&["-p1", "-z5", "-p", "2", "-z6", "--sharded", "--legacy"]);
    assert_eq!(config.listen.port, Some("2".into()));
    assert_eq!((config.body_len_max, config.mode), (6, Mode::Legacy));
}

#[test]
fn a_value_is_the_rest_of_the_word_or_the_next_word() {
    assert_eq!(refusal(&["-f", "-v"]), "invalid size: -v");
    assert_eq!(refusal(&["-f", "--"]), "invalid size: --");
    for (words, port) in [
        (&["-p", "-v"][..], "-v"),
        (&["-p", ""], ""),
        (&["-p=5"], "=5"),
        (&["-Vp=5"], "=5"),
        (&["-p="], "="),
        (&["-p", "=5"], "=5"),
        (&["-p", "--"], "--"),
        (&["--port", "-v"], "-v"),
        (&["--port=5"], "5"),
        (&["--port="], ""),
        (&["--port==5"], "=5"),
    ] {
        assert_eq!(config(words).listen.port, Some(port.into()), "{words:?}");
    }
}

#[test]
fn a_value_need_not_be_text() {
    let word = OsString::from_vec(b"-lunix:/\xff".to_vec());
    let parsed = parse(["beanstalkd".into(), word]);
    let Action::Run(config) = parsed.action else {
        panic!("{parsed:?}");
    };
    let address = config.listen.address.unwrap();
    assert_eq!(address.as_bytes(), b"unix:/\xff");
}

#[test]
fn a_missing_value_is_named() {
    assert_eq!(refusal(&["-p"]), "flag requires an argument: -p");
    assert_eq!(refusal(&["-VVz"]), "flag requires an argument: -z");
    assert_eq!(refusal(&["--port"]), "flag requires an argument: --port");
    assert_eq!(
        refusal(&["--verbose=1"]),
        "flag takes no argument: --verbose"
    );
}

#[test]
fn unknown_words_are_refused() {
    for (word, line) in [
        ("-x", "unknown flag: -x"),
        ("-Vx", "unknown flag: -x"),
        ("-V=5", "unknown flag: -="),
        ("-=", "unknown flag: -="),
        ("-V-", "unknown flag: --"),
        ("--", "unknown flag: --"),
        ("--por", "unknown flag: --por"),
        ("--por=5", "unknown flag: --por"),
        ("--=", "unknown flag: --"),
        ("", "unknown argument: "),
        ("-", "unknown argument: -"),
        ("11300", "unknown argument: 11300"),
    ] {
        assert_eq!(refusal(&[word]), line);
        assert_eq!(refusal(&["-V", word, "-v"]), line);
    }
}

#[test]
fn a_refusal_comes_with_the_help() {
    let Action::Print { text, .. } = parse_words(&["-x"]).action else {
        panic!("there is no such flag");
    };
    assert!(text.contains("\nUse: beanstalkd [OPTIONS]\n"));
}

#[test]
fn sizes_are_digits_in_range() {
    for (value, size) in [("0", 0), ("007", 7), (" 5", 5), ("\t\n\x0b\x0c\r 5", 5)] {
        assert_eq!(config(&["-s", value]).binlog_file_len, size);
    }
    let too_large_to_sync = (SYNC_EVERY_MS_MAX + 1).to_string();
    let too_large_a_file = (BINLOG_FILE_LEN_MAX + 1).to_string();
    for (flag, value) in [
        ("-z", "-1"),
        ("-z", "+1"),
        ("-z", ""),
        ("-z", " "),
        ("-z", "1 "),
        ("-z", "1k"),
        ("-z", "0x10"),
        ("-z", "18446744073709551616"),
        ("-s", "-1"),
        ("-s", &too_large_a_file),
        ("-f", "-1"),
        ("-f", "1.5"),
        ("-f", &too_large_to_sync),
    ] {
        assert_eq!(refusal(&[flag, value]), format!("invalid size: {value}"));
    }
    let largest = config(&["-s9223372036854775807", "-f9223372036854"]);
    assert_eq!(largest.binlog_file_len, BINLOG_FILE_LEN_MAX);
    assert_eq!(largest.binlog_sync, SyncPolicy::EveryMs(SYNC_EVERY_MS_MAX));
}

#[test]
fn version_and_help_answer_where_they_stand() {
    let version = format!("1.13.0+beanshard.{}", env!("CARGO_PKG_VERSION"));
    let old = (format!("beanstalkd {version}\n"), Output::Stdout);
    assert_eq!(printed(&["-v"]), old);
    assert_eq!(printed(&["-Vv", "-x", "junk"]), old);
    let own = env!("CARGO_PKG_VERSION");
    let new = (format!("beanshard {own}\n"), Output::Stdout);
    assert_eq!(printed(&["--version"]), new);
    let text = help("beanstalkd");
    assert_eq!(printed(&["-h", "-v"]), (text.clone(), Output::Stderr));
    assert_eq!(printed(&["--help"]), (text, Output::Stdout));
    assert_eq!(refusal(&["-x", "-v"]), "unknown flag: -x");
}

#[test]
fn obsolete_flags_warn_once_each_time() {
    let parsed = parse_words(&["-cn", "-V"]);
    let flags = ['c', 'n'].map(|flag| Warning::Obsolete { flag });
    assert_eq!(parsed.warnings, flags);
    assert!(matches!(parsed.action, Action::Run(_)));
    assert_eq!(parse_words(&["-c", "-v"]).warnings.len(), 1);
}

#[test]
fn long_names_do_what_short_ones_do() {
    let short = ["-bd", "-f1", "-ll", "-pp", "-s2", "-uu", "-V", "-z3"];
    let long = [
        "--binlog=d",
        "--fsync-ms=1",
        "--listen=l",
        "--port=p",
        "--binlog-size=2",
        "--user=u",
        "--verbose",
        "--max-job-size=3",
    ];
    assert_eq!(config(&short), config(&long));
    assert_eq!(config(&["--no-fsync"]), config(&["-F"]));
}

#[test]
fn the_sharded_mode_has_flags_of_its_own() {
    let words = [
        "--owners=64",
        "--frontends",
        "1",
        "--owner-wait=0",
        "--multi-watch=reject",
        "--skip-damage",
        "--sharded",
    ];
    let Action::Run(config) = parse_words(&words).action else {
        panic!("it can be served");
    };
    let expected = Sharding {
        owners: Some(64),
        frontends: Some(1),
        owner_wait_ms: 0,
        rejects_multi_watch: true,
        skips_damage: true,
    };
    assert_eq!((config.mode, config.sharding), (Mode::Sharded, expected));
    let back = ["--sharded", "--multi-watch=reject", "--multi-watch=serve"];
    let Action::Run(config) = parse_words(&back).action else {
        panic!("it can be served");
    };
    assert_eq!(config.sharding, Sharding::default());
    for flag in [
        "--owners=1",
        "--frontends=1",
        "--owner-wait=1",
        "--multi-watch=serve",
        "--skip-damage",
    ] {
        let name = flag.split('=').next().unwrap();
        let line = format!("flag needs --sharded: {name}");
        assert_eq!(refusal(&[flag]), line);
        assert_eq!(refusal(&["--sharded", flag, "--legacy"]), line);
    }
}

#[test]
fn values_of_the_sharded_mode_have_limits() {
    for value in ["0", "65", "-1", "", "x", "65537"] {
        for flag in ["--owners", "--frontends"] {
            let line = format!("invalid number: {value}, {flag} takes 1 to 64");
            assert_eq!(refusal(&["--sharded", flag, value]), line);
        }
    }
    assert_eq!(refusal(&["--owner-wait=3600001"]), "invalid size: 3600001");
    assert_eq!(
        config(&["--owner-wait=3600000"]).sharding.owner_wait_ms,
        3_600_000
    );
    let line = "invalid value: Serve, --multi-watch takes serve or reject";
    assert_eq!(refusal(&["--multi-watch", "Serve"]), line);
}

#[test]
fn a_child_is_told_the_rest_elsewhere() {
    assert_eq!(parse_words(&["child"]).action, Action::Child(None));
    let with_dir = Action::Child(Some("-b".into()));
    assert_eq!(parse_words(&["child", "-b"]).action, with_dir);
    assert_eq!(refusal(&["child", "d", "-V"]), "unknown argument: -V");
    assert_eq!(refusal(&["-V", "child"]), "unknown argument: child");
}

#[test]
fn a_program_without_a_name_has_its_own() {
    assert_eq!(parse([]).program, "beanshard");
}

"""Commands, statements and tool names that destroy data, stop machines or hand them over: one row a kind.

Patterns in RE2 syntax, in case as their shells and languages have it, for the arguments of a tool call as a model reads
them: a JSON text with its escapes undone, in which a command begins behind a quote. A command counts where one can
begin, so that prose which only mentions it does not; what a script or an alias does when it is called, nobody can see
here. Chosen for what cannot be undone, by hand and not from data: `rm -rf build` is in it as well.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from router.signals.re2_search import compile_pattern

# Between two words of a command: blanks, or the seam of a list such as ["rm", "-rf"].
_S = r"""(?:[ \t]+|["'] *, *["'])"""
# What is no end of a command.
_C = r"""[^\n;&|]"""
_COMMAND = (
    r"""(?:^|["'`\n;&|({]|\$\(|\b(?:sudo|doas|nohup|time|nice|exec|command|xargs|then|do|else)(?: +-\S+)* """
    r"""|\bssh(?: +-\S+)* +\S+ |\btimeout +\S+ |\benv(?: +\w+=\S*)* |^\w+=\S* )\s*(?:\w:)?(?:[\w.~-]*[/\\])*"""
)
_STATEMENT = r"""(?:^|["'`;\n(]|\*/|\bBEGIN\b|\$\$)\s*"""


# A table's name as SQL writes it, and where a statement ends: a search for "drop table postgres howto" has words there.
_NAME = r"""[\w.$@%\[\]`"'\\-]+"""
_END = r"""(?:;|\\?["'`)}]|$|\n|--|/\*)"""


def _command(rest: str) -> str:
    return _COMMAND + rest.replace(" ", _S)


def _statement(rest: str) -> str:
    return f"(?i:{_STATEMENT}{rest})".replace(" ", r"\s+")


class Row(NamedTuple):
    """A kind of destruction: its label, which evidence shows, and the pattern."""

    label: str
    pattern: str


IN_ARGUMENTS: Final[tuple[Row, ...]] = (
    # Files and disks.
    Row("rm -r", _command(r"rm (?:-[\w-]+ )*(?:-\w*[rR]\w*|--recursive|--no-preserve-root)\b")),
    Row("rmdir /s", _command(r"(?i:rmdir|rd|del|erase) (?:/\w )*(?i:/s)\b")),
    Row("Remove-Item -Recurse", _command(rf"(?i:Remove-Item|ri)\b{_C}*?(?i:-Recurse)\b")),
    Row("find -delete", _command(rf"find {_C}*?(?:-delete\b|-exec(?:dir)? +(?:\S*/)?rm\b)")),
    Row("shred", _command(r"(?:shred|wipe|srm) \S")),
    Row("mkfs", _command(r"(?:mkfs(?:\.\w+)?|mke2fs|wipefs|mkswap|newfs) \S")),
    Row("format", _command(r"(?i:format(?:\.com)? [a-z]:)")),
    Row("partitions", _command(r"(?:diskpart|sgdisk (?:--zap-all|-Z)|parted \S+ (?:mklabel|rm)|fdisk /dev)\b")),
    Row("dd to a device", _command(rf"dd\b{_C}*?\bof=/dev/")),
    Row("> device", r">\s*/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mapper)\w*"),
    Row("truncate", _command(rf"truncate {_C}*?(?:-s|--size)[\s=]?0\b")),
    Row(
        "shadow copies",
        _command(r"(?i:vssadmin(?:\.exe)? delete|wmic(?:\.exe)? shadowcopy delete|wbadmin(?:\.exe)? delete)\b"),
    ),
    Row(
        "rmtree", r"\bshutil\.rmtree\(|\brimraf\b\W|\bfs(?:Promises|\.promises)?\.rm(?:dir)?(?:Sync)?\([^)\n]*recursive"
    ),
    # Machines and their users.
    Row(
        "shutdown",
        _command(
            r"(?:shutdown|poweroff|halt|reboot|Stop-Computer|Restart-Computer)(?: (?:-|/|now\b)|\s*(?:[\"'`;&|\n)}]|$))"
        ),
    ),
    Row("init 0", _command(r"(?:(?:tel)?init [06]|systemctl (?:-\S+ )*(?:poweroff|reboot|halt|isolate))\b")),
    Row("kill all", _command(r"(?:kill (?:-\w+ )+-1|killall5|killall -9|pkill (?:-\w+ )*-u)\b")),
    Row("fork bomb", r":\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:"),
    Row(
        "chmod -R 777",
        _command(rf"chmod\b{_C}*?(?:-\w*R\w*|--recursive)\b{_C}*?(?:\b0?777\b|\ba?\+rwx\b|\bugo\+rwx\b)"),
    ),
    Row("chmod -R 777", _command(r"chmod (?:0?777|a?\+rwx|ugo\+rwx) (?:-\w*R\w*|--recursive)\b")),
    Row(
        "chown -R /",
        _command(rf"ch(?:own|grp)\b{_C}*?(?:-\w*R\w*|--recursive)\b{_C}*? /(?:[\s\"'*]|$|etc\b|usr\b|var\b|bin\b)"),
    ),
    Row("userdel", _command(r"(?:userdel|deluser|groupdel|dscl \. -delete) \S")),
    Row(
        "firewall off",
        _command(r"(?:iptables (?:-F|--flush)|nft flush ruleset|ufw (?:--force )?(?:disable|reset)|setenforce 0)\b"),
    ),
    Row("crontab -r", _command(r"crontab (?:-u \S+ )?-r\b")),
    Row("history", _command(r"(?:history -c|wevtutil(?:\.exe)? cl|Clear-EventLog|auditctl -D)\b")),
    Row("reg delete", _command(r"(?i:reg(?:\.exe)? delete) \S")),
    # Code from elsewhere, run unseen.
    Row(
        "curl | sh",
        r"\b(?:curl|wget|fetch)\b[^\n;]*\|\s*(?:sudo\s+)?(?:[\w/]*/)?(?:(?:ba|z|da|k|fi|c)?sh|python[\d.]*|perl|ruby|node|php)\b",
    ),
    Row("curl | sh", r"\b(?:(?:ba|z|da|k)?sh|source|eval)\b[^\n;|]*(?:<\(|\$\(|`)\s*(?:curl|wget)\b"),
    Row(
        "curl | sh",
        r"(?i:\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|DownloadString)\b[^\n;]*\|\s*(?:iex|Invoke-Expression)\b)",
    ),
    Row(
        "curl | sh",
        r"(?i:\b(?:iex|Invoke-Expression)\b[^\n;]*\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|DownloadString)\b)",
    ),
    # Version control.
    Row(
        "git push --force",
        _command(rf"git\b{_C}*?\bpush\b{_C}*?[\s\"'](?:--force\b|-\w*f\w*\b|--mirror\b|--delete\b|-d |\+[\w/])"),
    ),
    Row("git reset --hard", _command(rf"git\b{_C}*?\breset\b{_C}*?--hard\b")),
    Row("git clean -f", _command(rf"git\b{_C}*?\bclean\b{_C}*?[\s\"'](?:-\w*f\w*|--force)\b")),
    Row("git branch -D", _command(rf"git\b{_C}*?\bbranch\b{_C}*?(?: -D\b|--delete +--force\b)")),
    Row(
        "git history",
        _command(rf"git\b{_C}*?\b(?:filter-branch|filter-repo|reflog +expire|stash +(?:drop|clear)|update-ref +-d)\b"),
    ),
    Row("gh delete", _command(r"(?:gh|glab) [\w-]+ (?:delete|archive)\b")),
    # Containers, clusters, clouds.
    Row("kubectl delete", _command(rf"(?:kubectl|oc)\b{_C}*?[\s\"'](?:delete|drain)\b")),
    Row("helm uninstall", _command(rf"helm\b{_C}*?[\s\"'](?:uninstall|delete)\b")),
    Row(
        "docker prune",
        _command(
            rf"(?:docker|podman)\b{_C}*?(?:\bprune\b|\bvolume (?:rm|remove)\b|\bdown\b{_C}*?(?:-v\b|--volumes\b))"
        ),
    ),
    Row(
        "terraform destroy",
        _command(
            rf"(?:terraform|tofu|terragrunt|pulumi|cdk|sst|serverless|sls|eksctl)\b{_C}*?"
            rf"(?:[\s\"'](?:destroy|remove)\b|[\s\"']-destroy\b|\bstate rm\b|\bdelete cluster\b)"
        ),
    ),
    Row(
        "aws delete",
        _command(
            rf"aws\b{_C}*?(?:[\s\"'](?:delete|terminate|deregister|purge|remove)-[\w-]+"
            rf"|\bs3 rb\b|\bs3 rm\b{_C}*?--recursive\b|\bs3 sync\b{_C}*?--delete\b)"
        ),
    ),
    Row(
        "gcloud delete",
        _command(
            rf"(?:gcloud|az|doctl|linode-cli|heroku|flyctl|fly|vercel|ibmcloud|oci)\b{_C}*?"
            r"(?:[\s\"':](?:delete|destroy|purge|remove|terminate)\b)"
        ),
    ),
    Row(
        "gsutil rm",
        _command(
            r"(?:gsutil (?:-\w+ )*(?:rm|rb)|bq (?:-\S+ )*rm|mc rb|mc rm|rclone (?:purge|delete)|s3cmd (?:rb|del))\b"
        ),
    ),
    # Databases.
    Row(
        "drop",
        _statement(
            rf"drop (?:table|database|schema|keyspace|view|materialized view|index|user|role|tablespace|collection|type"
            rf"|sequence|bucket)(?: concurrently)?(?: if exists)? {_NAME}(?:\s*,\s*{_NAME})*"
            rf"(?: (?:cascade|restrict|purge|force|on {_NAME}))*\s*{_END}"
        ),
    ),
    Row("truncate table", _statement(r"truncate (?:table )?[\w.\"`\[\]]+\s*(?:;|[\"'`)]|$|,|cascade\b|restart\b)")),
    Row(
        "delete without where",
        _statement(
            r"delete from (?:only )?[\w.\"`\[\]]+?\s*(?:;|\\?[\"'`)}]|$|returning\b|where (?:1\s*=\s*1|true\b))"
        ),
    ),
    Row("alter table drop", _statement(r"alter table [^;\n]*?\bdrop (?:column|partition|constraint)\b")),
    Row(
        "dropdb",
        _command(r"(?:dropdb|dropuser|mysqladmin (?:-\S+ )*drop|rails db:(?:drop|reset)|rake db:(?:drop|reset))\b"),
    ),
    Row("mongo drop", r"\.(?:dropDatabase|drop|dropIndexes)\(\s*\)|\.(?:deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)"),
    Row("redis flush", r"(?i:(?:^|[\"'`\n;&|(]|\bredis-cli\b[^\n;&|]*?)\s*flush(?:all|db)\b)"),
    # Over HTTP, of packages, and where a tool's verb is an argument.
    Row(
        "verb",
        r"(?i:\"(?:action|operation|op|verb|mode|command|cmd)\"\s*:\s*\"(?:delete|destroy|drop|purge|wipe|erase|truncate"
        r"|terminate|shutdown|factory_?reset|format_?(?:disk|drive))(?:[_\s-][\w-]*|all)?\")",
    ),
    Row(
        "http delete",
        r"(?i:\"(?:http_?)?(?:method|verb)\"\s*:\s*\"delete\"|\bcurl\b[^\n;&|]*?(?:-X|--request)[ =]*[\"']?delete\b)",
    ),
    Row(
        "unpublish",
        _command(r"(?:npm (?:-\S+ )*(?:unpublish|deprecate)|cargo yank|gem yank|pnpm unpublish|yarn npm unpublish)\b"),
    ),
)
"""What a call's arguments may hold."""

_VERB = (
    r"(?:delete|destroy|drop|purge|wipe|erase|truncate|terminate|decommission|uninstall|factory_?reset|shut_?down"
    r"|power_?off|reboot|format_(?:disk|drive|volume|partition)|rm|rmdir|unlink|revoke_all|force_push|hard_reset)"
)
IN_NAMES: Final = Row(
    "name",
    # The verb is a word of the name: behind the start, a separator or a namespace, or before a hump.
    rf"(?:^|[_.:/ -])(?i:{_VERB})(?:[_.:/ -]|$)|(?:^|[_.:/ -])(?:delete|destroy|drop|purge|wipe|erase|truncate"
    r"|terminate|uninstall|Delete|Destroy|Drop|Purge|Wipe|Erase|Truncate|Terminate|Uninstall)[A-Z]",
)
"""What a tool's name may say: a verb for what cannot be undone. `remove` and `clear` are left out: baskets, filters and
screens are what they are mostly used for."""

ARGUMENTS: Final[Any] = compile_pattern("|".join(f"({row.pattern})" for row in IN_ARGUMENTS), "IN_ARGUMENTS", True)
"""All rows as one program; its groups are the rows, in their order."""

NAMES: Final[Any] = compile_pattern(IN_NAMES.pattern, "IN_NAMES", True)

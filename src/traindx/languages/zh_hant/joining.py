"""How names, clauses and details stand in a row."""

MESSAGES: dict[str, str] = {
    "{text}": "{text}",
    "{a}, {b}": "{a}、{b}",
    "{a}; {b}": "{a}；{b}",
    "{name} ({about})": "{name}（{about}）",
    "{what} ({places})": "{what}（{places}）",
    "{what}: {reason}": "{what}：{reason}",
    "{what} at {where}: {reason}": "{what}，位於 {where}：{reason}",
    "{severity} {finding}": "{severity} {finding}",
    "{names} and {rest} more": "{names}，以及另外 {rest} 個",
    "and {n} more": "另外還有 {n} 項",
    "{name} {value}": "{name} {value}",
}

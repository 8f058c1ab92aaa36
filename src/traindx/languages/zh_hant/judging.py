"""What the user selects, ignores, and knows already."""

MESSAGES: dict[str, str] = {
    "{code} has no option `{option}`. It has {options}.": (
        "{code} 沒有名為 `{option}` 的選項，只有 {options}。"
    ),
    "{code} has no options.": "{code} 沒有任何選項。",
    "not selected": "未被選取",
    "not judged yet": "尚未判斷",
    "{context}: {reason}": "{context}：{reason}",
    "ignored by {source}: {entry}": "依 {source} 的設定忽略：{entry}",
    "known: in the baseline {file}": "已知：列於基準檔 {file}",
    "`{entry}` names no site after its `@`; `*` stands for every one.": (
        "`{entry}` 的 `@` 之後沒有位置；`*` 代表所有位置。"
    ),
}

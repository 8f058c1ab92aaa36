"""Settings, options and baselines."""

MESSAGES: dict[str, str] = {
    "Cannot read `{file}`: {why}.": "無法讀取 `{file}`：{why}。",
    "`{file}` is not valid TOML: {why}.": "`{file}` 不是有效的 TOML：{why}。",
    "{place} names no rule; leave it out to apply them all.": (
        "{place} 沒有指定任何規則；若要套用全部規則，請省略它。"
    ),
    "{place} takes {contract}; it is {value}.": "{place} 應為{contract}；目前是 {value}。",
    "{place} knows no key `{key}`; the nearest is `{nearest}`.": (
        "{place} 沒有名為 `{key}` 的設定；最接近的是 `{nearest}`。"
    ),
    "{place}: {code} has no options.": "{place}：{code} 沒有任何選項。",
    "{place}: {error}": "{place}：{error}",
    "a table": "一個表格（table）",
    "a path": "一個路徑",
    "a whole number from 1 on": "不小於 1 的整數",
    "a number from 0 to 1": "0 到 1 之間的數",
    "a number from 0 on": "不小於 0 的數",
    "a number from 4 on": "不小於 4 的數",
    "The working directory is gone; change to one that exists.": (
        "工作目錄已不存在；請切換到存在的目錄。"
    ),
    "a finite number": "有限的數",
    "true or false": "true 或 false",
    "one of {names}": "{names} 其中之一",
    "a list of names in quotes": "一串以引號括住的名稱",
    "Cannot read the baseline `{file}`: {why}.": "無法讀取基準檔 `{file}`：{why}。",
    "`{file}` is no baseline of schema {schema}; `traindx check --write-baseline {file}` "
    "writes one.": (
        "`{file}` 不是格式 {schema} 的基準檔；"
        "`traindx check --write-baseline {file}` 可以產生一個。"
    ),
}

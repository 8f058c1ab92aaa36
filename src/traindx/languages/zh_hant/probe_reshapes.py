"""F013, and the probe that feeds it."""

MESSAGES: dict[str, str] = {
    "nothing is reshaped": "沒有任何張量被改變形狀",
    "Reshapes after which an axis lies elsewhere among the others.": (
        "改變形狀之後，某個軸在各軸之間換了位置的次數。"
    ),
    "A view or reshape makes the shape that a transpose would, and mixes what the axes hold.": (
        "以 view 或 reshape 做出轉置應有的形狀，使各軸的內容混在一起。"
    ),
    "A reshape keeps the order of the elements: it cannot move an axis.": (
        "reshape 保持元素的順序：它無法移動軸。"
    ),
    "axes that are split or merged": "被分割或合併的軸",
    "a matrix that is skewed on purpose": "刻意錯位的矩陣",
    "neighbouring pixels of the input {after} of {place} are more than twice as alike once it is "
    "read as {before}: its channels come last": (
        "{place} 的輸入 {after} 若讀作 {before}，相鄰像素的相似程度超過兩倍：其通道在最後"
    ),
    "the input {after} of {place} is a view of {before}, in which the axis of {axis} lies "
    "elsewhere": "{place} 的輸入 {after} 是 {before} 的 view，其中大小為 {axis} 的軸在別的位置",
    "in `{place}` ({kind}) rows that were {before} before they were merged are split into "
    "{after}": "在 `{place}`（{kind}）中，合併前為 {before} 的各列被分割成 {after}",
    "in `{place}` ({kind}) {before} is reshaped to {after}, in which the axis of {axis} lies "
    "elsewhere: it has other elements now": (
        "在 `{place}`（{kind}）中，{before} 被 reshape 成 {after}，其中大小為 {axis} 的軸換了位置："
        "它現在含有別的元素"
    ),
    "x.permute({order})": "x.permute({order})",
    "split the axis with `view` first, then exchange axes with `transpose`": (
        "先以 `view` 分割軸，再以 `transpose` 交換軸"
    ),
    "exchange axes with `transpose` first, then merge them with `reshape`": (
        "先以 `transpose` 交換軸，再以 `reshape` 合併"
    ),
    "x.view({sizes}, *x.shape[1:]).transpose(0, 1)": (
        "x.view({sizes}, *x.shape[1:]).transpose(0, 1)"
    ),
}

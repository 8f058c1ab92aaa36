"""F003 dead-units."""

MESSAGES: dict[str, str] = {
    "no ReLU was seen over {values:,} values of each unit": (
        "沒有任何 ReLU 的每個單元都被觀察到 {values:,} 個數值"
    ),
    "ReLU units were seen in {seen} of the {windows} windows needed, of {values:,} values each": (
        "ReLU 單元只觀察了所需 {windows} 個視窗中的 {seen} 個，每個視窗 {values:,} 個數值"
    ),
    "{dead:.0%} of the units of `{worst}` were active for none of {samples:,.0f} values (threshold "
    "{threshold:.0%}, {windows} windows in a row), {first:.0%} in the first window of the run; "
    "layers of {model} with so many: {layers}": (
        "`{worst}` 有 {dead:.0%} 的單元在 {samples:,.0f} 個數值中從未活化"
        "（門檻 {threshold:.0%}，連續 {windows} 個視窗），而訓練的第一個視窗為 {first:.0%}；"
        "{model} 中如此的層數：{layers}"
    ),
    "Large steps have pushed the inputs of these units below 0 for every sample, where ReLU passes "
    "no gradient.": ("過大的更新使這些單元的輸入對每個樣本都小於 0，而 ReLU 在該處不傳遞梯度。"),
    "Their inputs were below 0 from the start, where ReLU passes no gradient.": (
        "這些單元的輸入從一開始就小於 0，而 ReLU 在該處不傳遞梯度。"
    ),
    "Start again with a learning rate a tenth as large, or raise it slowly over the first steps; a "
    "normalization layer before the ReLU, or `nn.LeakyReLU(0.1)` in its place, keeps units "
    "alive.": (
        "將學習率降為十分之一重新訓練，或在最初幾步慢慢提高；在 ReLU 之前加入正規化層，或以 "
        "`nn.LeakyReLU(0.1)` 取代 ReLU，可避免單元死亡。"
    ),
    "Start biases at 0 (`nn.init.zeros_(layer.bias)`) and weights with "
    "`nn.init.kaiming_normal_(layer.weight, nonlinearity='relu')`.": (
        "bias 初始為 0（`nn.init.zeros_(layer.bias)`），權重使用 "
        "`nn.init.kaiming_normal_(layer.weight, nonlinearity='relu')` 初始化。"
    ),
    "units that are active for a few samples": "只對少數樣本活化的單元",
    "units that were dead from the start": "從一開始就已死亡的單元",
    "a batch too small to tell": "小到無法判斷的批次",
}

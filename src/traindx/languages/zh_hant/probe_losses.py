"""L001, L004, L014 and G005: the loss before training, a few samples, a penalty, gradients."""

MESSAGES: dict[str, str] = {
    "The gradient that autograd computes is not the derivative of the loss.": (
        "autograd 算出的梯度不是損失的導數。"
    ),
    "Before training, the loss is far from that of a guess that looks at nothing.": (
        "訓練前的損失與什麼都不看的猜測相差甚遠。"
    ),
    "A few samples cannot be learned by heart, so that a whole data set cannot be either.": (
        "連少數樣本都無法記住，整個資料集更不可能。"
    ),
    "The loss has a term of the parameters alone, and it falls as they grow.": (
        "損失中有只取決於參數的項，而它隨參數變大而下降。"
    ),
    "the gradient of {names} is off by up to {percent:.3g} % against differences in float64": (
        "{names} 的梯度與 float64 差分相差達 {percent:.3g} %"
    ),
    "the gradient of {model} as a whole is off by {percent:.3g} % against differences in "
    "float64": "{model} 整體的梯度與 float64 差分相差 {percent:.3g} %",
    "Something between these parameters and the loss has a wrong backward.": (
        "這些參數與損失之間有某處的反向傳播是錯的。"
    ),
    "{names} stands in the way of the gradient, which may be meant.": (
        "{names} 擋在梯度的路上，這可能是有意的。"
    ),
    "Backward passes written by hand are in its graph: {names}.": (
        "計算圖中有手寫的反向傳播：{names}。"
    ),
    "x = x.double().requires_grad_()\n"
    "torch.autograd.gradcheck(function, (x,))  # of each function with its own backward": (
        "x = x.double().requires_grad_()\n"
        "torch.autograd.gradcheck(function, (x,))  # 對每個自帶反向傳播的函式"
    ),
    "kinks": "轉折點",
    "random numbers of the model": "模型的隨機數",
    "rounding": "捨入誤差",
    "{n} classes": "{n} 個類別",
    "before training the loss of {model} is {loss:.4g}, and a guess over {guess} would have "
    "{chance:.4g}: what the loss is given has a standard deviation of {std:.3g}": (
        "訓練前 {model} 的損失是 {loss:.4g}，而在{guess}中猜測只有 {chance:.4g}："
        "損失收到的值的標準差為 {std:.3g}"
    ),
    "The outputs of {model} are large before anything is learned: its inputs are not scaled, or "
    "its last layer starts too wide.": (
        "{model} 什麼都還沒學到，輸出就已經很大：輸入沒有縮放，或最後一層的初始值太大。"
    ),
    "x = (x - mean) / std  # per feature, of the training data\n"
    "nn.init.normal_(head.weight, std=0.01); nn.init.zeros_(head.bias)  # the last layer": (
        "x = (x - mean) / std  # 逐特徵，取自訓練資料\n"
        "nn.init.normal_(head.weight, std=0.01); nn.init.zeros_(head.bias)  # 最後一層"
    ),
    "before training the loss of {model} is {loss:.4g}, below the {chance:.4g} of a guess over "
    "{guess}": "訓練前 {model} 的損失是 {loss:.4g}，低於在{guess}中猜測的 {chance:.4g}",
    "The model is trained already, or it is given what it should predict.": (
        "模型已經訓練過，或它得到了應該預測的東西。"
    ),
    "Of a model that is not pretrained: look for the target among its inputs.": (
        "若模型不是預先訓練的：請檢查輸入中是否含有目標值。"
    ),
    "penalties and other terms of the loss": "懲罰項與損失的其他項",
    "class weights": "類別權重",
    "doubling the parameters of {model} lowers the loss by {fall:.4g} although its output is the "
    "same": "{model} 的參數加倍後，輸出相同，損失卻降低了 {fall:.4g}",
    "A penalty on the parameters has the wrong sign.": "對參數的懲罰項正負號錯誤。",
    "loss = data_loss + strength * penalty  # a strength of 0 or more": (
        "loss = data_loss + strength * penalty  # strength 不小於 0"
    ),
    "the data term, which is of the same output": "資料項，因為輸出相同",
    "{model} cannot learn {samples} samples by heart: {percent:.0f} % of the loss of a guess is "
    "left": "{model} 無法記住 {samples} 個樣本：仍剩下猜測損失的 {percent:.0f} %",
    "{model} cannot learn {samples} samples by heart: its loss is never finite": (
        "{model} 無法記住 {samples} 個樣本：損失從未是有限值"
    ),
    "Something between the input of {model} and its loss keeps it from learning anything at all.": (
        "{model} 的輸入與損失之間有某處讓它什麼都學不到。"
    ),
    "Train on two samples, and follow their outputs and gradients layer by layer: `traindx run` on "
    "such a script names the first that does not move.": (
        "用兩個樣本訓練，並逐層追蹤其輸出與梯度：對這樣的腳本執行 `traindx run` "
        "會指出第一個不動的層。"
    ),
}
